"use strict";
(function () {
  const $ = (selector, root) => (root || document).querySelector(selector);
  const $$ = (selector, root) => Array.from((root || document).querySelectorAll(selector));
  const data = JSON.parse($("#data").textContent);
  const COLOURS = 8, TEXTURES = 5, FIRST_BARS = 30, FIRST_ROWS = 200;
  const look = (n) => "k" + (n % COLOURS) + " x" + (Math.floor(n / COLOURS) % TEXTURES);

  function make(tag, classes, text) {
    const node = document.createElement(tag);
    if (classes) node.className = classes;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  // A tensor that is hovered, focused or held lights up in every picture.
  const sheet = make("style");
  document.head.append(sheet);
  let held = null, lit = null;
  function light(tensor) {
    if (tensor === lit) return;
    lit = tensor;
    document.body.classList.toggle("lit", tensor !== null);
    sheet.textContent = tensor === null ? "" :
      'main [data-t]:not([data-t~="' + tensor + '"]){opacity:.16}' +
      'main [data-t*=" "]:not([data-t~="' + tensor + '"]){opacity:.38}' +
      '.chips [data-t]:not([data-t~="' + tensor + '"]){opacity:.5}' +
      'path[data-t~="' + tensor + '"]{stroke:#000;stroke-width:3}';
  }
  function hold(tensor) {
    held = held === tensor ? null : tensor;
    $$("#chips button").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.t === held)));
    light(held);
  }
  const tensorOf = (target) => {
    const near = target.closest && target.closest("[data-t]");
    return near && near.dataset.t && !near.dataset.t.includes(" ") ? near.dataset.t : null;
  };
  const chips = $$("#chips button");
  chips.forEach((chip, i) => {
    chip.tabIndex = i ? -1 : 0;
    chip.addEventListener("click", () => hold(chip.dataset.t));
    chip.addEventListener("focus", () => light(chip.dataset.t));
    chip.addEventListener("blur", () => light(held));
    chip.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -i, End: chips.length - 1 - i }[event.key];
      if (step === undefined) return;
      const next = chips[(i + step + chips.length) % chips.length];
      chips.forEach((other) => { other.tabIndex = -1; });
      next.tabIndex = 0;
      next.focus();
      event.preventDefault();
    });
  });
  const find = $("#find-tensor");
  if (find) find.addEventListener("change", () => {
    const at = data.tensor.indexOf(find.value);
    if (at >= 0 || held !== null) { held = null; hold(at >= 0 ? String(at) : null); }
  });

  // What lies under the pointer, or was tapped, in words.
  const tip = $("#tip");
  function explain(event) {
    const near = event.target.closest && event.target.closest("[data-tip]");
    tip.hidden = !near;
    if (!near) return;
    tip.textContent = near.dataset.tip;
    const wide = tip.offsetWidth, high = tip.offsetHeight;
    tip.style.left = Math.max(6, Math.min(event.clientX + 14, innerWidth - wide - 6)) + "px";
    tip.style.top = (event.clientY + 18 + high > innerHeight ? event.clientY - high - 10 : event.clientY + 18) + "px";
  }
  document.addEventListener("pointerover", (event) => { light(tensorOf(event.target) || held); explain(event); });
  document.addEventListener("pointermove", (event) => { if (!tip.hidden) explain(event); });
  document.documentElement.addEventListener("pointerleave", () => { light(held); tip.hidden = true; });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { held = null; hold(null); light(null); tip.hidden = true; }
  });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // Links to an assumption open it.
  function open() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") { target.open = true; $("summary", target).focus({ preventScroll: true }); }
    if (!target || target.tagName !== "TR") return;
    const box = target.closest("details");
    if (box && !box.open) { box.open = true; target.scrollIntoView({ block: "center" }); }
    target.focus({ preventScroll: true });
  }
  addEventListener("hashchange", open);
  document.addEventListener("click", (event) => {
    const near = event.target.closest && event.target.closest("a.why");
    if (near && near.getAttribute("href") === location.hash) open();
  });

  // Pictures of many Einsums are shown a window at a time, all of them the same window.
  const windowed = $$(".windowed").filter((box) => $(".pager", box));
  function turn(page) {
    windowed.forEach((box) => {
      const templates = $$("template", box), chooser = $("select", box);
      if (page < 0 || page >= templates.length) return;
      $(".window", box).replaceChildren(templates[page].content.cloneNode(true));
      chooser.value = String(page);
      $$("button", box).forEach((b) => {
        b.disabled = page + Number(b.dataset.step) < 0 || page + Number(b.dataset.step) >= templates.length;
      });
    });
  }
  windowed.forEach((box) => {
    const chooser = $("select", box);
    chooser.addEventListener("change", () => turn(Number(chooser.value)));
    $$("button", box).forEach((b) => b.addEventListener("click", () => turn(Number(chooser.value) + Number(b.dataset.step))));
    $$("button", box)[0].disabled = true;
  });

  // Paper cannot be clicked: assumptions are printed open.
  let closed = [];
  addEventListener("beforeprint", () => { closed = $$("details.card:not([open])"); closed.forEach((card) => { card.open = true; }); });
  addEventListener("afterprint", () => { closed.forEach((card) => { card.open = false; }); });

  open();
  if (!$("#bars-what")) return;

  // Numbers with units.
  const PREFIXES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"], [1e-15, "f"]];
  function digits(value) { return String(Number(value.toPrecision(4))); }
  function si(value, unit) {
    if (!value) return "0 " + unit;
    const [factor, prefix] = PREFIXES.find((pair) => Math.abs(value) >= pair[0]) || PREFIXES[PREFIXES.length - 1];
    return digits(value / factor) + " " + prefix + unit;
  }
  function bytes(bits) {
    let value = bits / 8, i = 0;
    if (bits < 8192) return bits + " bit";
    while (value >= 1024 && i < 5) { value /= 1024; i += 1; }
    return digits(value) + " " + ["B", "KiB", "MiB", "GiB", "TiB", "PiB"][i];
  }
  const SHOWN = [(v) => si(v, "J"), bytes, (v) => si(v, "s")];

  // Stacked bars.
  const COLUMN = { einsum: 0, component: 1, tensor: 2, action: 3 };
  const VALUE = [4, 5, 6];
  const nameOf = (key, i) => (key === "tensor" && i < 0 ? "operations" : data[key][i]);
  function grouped(what, rowKeys, partKey) {
    const rows = new Map();
    for (const row of data.rows) {
      const value = row[VALUE[what]];
      if (!value) continue;
      const ids = rowKeys.map((key) => row[COLUMN[key]]);
      const at = ids.join(" ");
      if (!rows.has(at)) rows.set(at, { ids, total: 0, parts: new Map() });
      const group = rows.get(at), part = row[COLUMN[partKey]];
      group.total += value;
      group.parts.set(part, (group.parts.get(part) || 0) + value);
    }
    const list = Array.from(rows.values());
    if (rowKeys.length === 1 && rowKeys[0] === "tensor") list.sort((a, b) => b.total - a.total);
    else list.sort((a, b) => a.ids[0] - b.ids[0] || (a.ids[1] || 0) - (b.ids[1] || 0));
    return list;
  }
  function draw(everything) {
    const what = Number($("#bars-what").value), partKey = $("#bars-parts").value;
    const rowKeys = $("#bars-rows").value.split(" ");
    const list = grouped(what, rowKeys, partKey), box = $("#bars"), legend = $("#bars-legend");
    const marks = what === 2 && rowKeys.length === 1 && rowKeys[0] === "einsum";
    const largest = Math.max(...list.map((g) => g.total), ...(marks ? data.latency : []), 0) || 1;
    box.replaceChildren();
    const used = new Set();
    const shown = everything ? list : list.slice(0, FIRST_BARS);
    shown.forEach((group) => { Array.from(group.parts.keys()).forEach((part) => used.add(part)); bar(group); });
    function bar(group) {
      const name = group.ids.map((id, i) => nameOf(rowKeys[i], id)).join(" · ");
      const label = make("span", "name", name), track = make("div", "track");
      label.title = name;
      const parts = Array.from(group.parts.entries()).sort((a, b) => a[0] - b[0]);
      for (const [part, value] of parts) {
        const seg = make("div", "seg " + (part < 0 ? "bare" : look(part)));
        seg.style.width = (100 * value / largest) + "%";
        const tensor = partKey === "tensor" ? part : rowKeys[0] === "tensor" ? group.ids[0] : null;
        if (tensor !== null) seg.dataset.t = String(tensor);
        seg.dataset.tip = name + ", " + nameOf(partKey, part) + ": " + SHOWN[what](value) + " (" + (100 * value / group.total).toFixed(1) + " %)";
        track.append(seg);
      }
      if (marks) {
        const limit = make("i", "limitmark");
        limit.style.left = (100 * data.latency[group.ids[0]] / largest) + "%";
        limit.dataset.tip = name + ": latency " + si(data.latency[group.ids[0]], "s");
        track.append(limit);
      }
      track.setAttribute("role", "img");
      track.setAttribute("aria-label", name + ": " + SHOWN[what](group.total));
      box.append(label, track, make("span", "value", SHOWN[what](group.total)));
    }
    if (shown.length < list.length) {
      const more = make("button", "all", "show all " + list.length + " bars");
      more.type = "button";
      more.addEventListener("click", () => draw(true));
      box.append(more);
    }
    legend.replaceChildren(...Array.from(used).sort((a, b) => a - b).slice(0, 40).map((part) => {
      const item = make("span");
      item.append(make("i", "swatch " + (part < 0 ? "bare" : look(part))), nameOf(partKey, part));
      if (partKey === "tensor") item.dataset.t = String(part);
      return item;
    }));
    $("#bars-note").textContent = what !== 2 ? "In all: " + SHOWN[what](data.totals[what]) + "." :
      "In all: " + si(data.totals[2], "s") + ". Components work at the same time: an Einsum takes as long as its busiest component, and of separate ports the slower counts" +
      (marks ? " (black mark)." : ".");
  }
  const controls = ["#bars-what", "#bars-rows", "#bars-parts"].map((id) => $(id));
  controls[0].addEventListener("change", () => {
    if (controls[0].value === "2") { controls[1].value = "einsum component"; controls[2].value = "tensor"; }
  });
  controls.forEach((control) => control.addEventListener("change", () => draw(false)));
  draw(false);

  // Every action, made when it is asked for.
  const details = $("#all-actions-box");
  let rows = 0;
  function actions() {
    const box = $("#all-actions");
    if (!rows) {
      const table = make("table"), head = make("tr");
      ["Einsum", "level", "tensor", "action", "count", "moved", "energy", "busy"].forEach((name) => head.append(make("th", "", name)));
      table.append(make("thead"), make("tbody"));
      table.tHead.append(head);
      box.append(table);
    }
    const body = $("tbody", box), old = $("button", box);
    if (old) old.remove();
    for (const row of data.rows.slice(rows, rows + FIRST_ROWS)) {
      const line = make("tr");
      line.append(make("th", "", data.einsum[row[0]]), make("td", "", data.component[row[1]]), make("td", "", row[2] < 0 ? "–" : data.tensor[row[2]]), make("td", "", data.action[row[3]]));
      [row[7].toLocaleString("en"), row[5] ? bytes(row[5]) : "–", si(row[4], "J"), row[6] ? si(row[6], "s") : "–"].forEach((text) => line.append(make("td", "num", text)));
      if (row[2] >= 0) line.dataset.t = String(row[2]);
      body.append(line);
    }
    rows += FIRST_ROWS;
    if (rows < data.rows.length) {
      const more = make("button", "", "more (" + (data.rows.length - rows) + " left)");
      more.type = "button";
      more.addEventListener("click", actions);
      box.append(more);
    }
  }
  details.addEventListener("toggle", () => { if (details.open && !rows) actions(); });
})();
