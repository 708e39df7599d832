"""The page in a real browser: every part, by mouse and keyboard, on a desk, a phone and paper."""

from __future__ import annotations

import base64
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from chromium import resize

pytestmark = pytest.mark.browser
NAMES = ("matmul", "conv-chain", "gpt3", "large", "hostile", "pipeline", "pareto")
PAGES = (*NAMES, "infeasible", "compare")
PARTS = ("summary", "mapping", "cascade", "occupancy", "breakdown", "roofline", "search", "tensors", "sources")
DESK, PHONE = (1280, 900), (390, 844)
ONE = ":not([data-t*=' '])"  # what speaks of one tensor alone
SECONDS_TO_OPEN = 2.0
Pages = Callable[[str], Path]


@pytest.fixture
def shown(browser: Any, pages: Pages) -> Callable[..., Any]:
    """Opens the report of a result in a window of a size; the log starts empty."""

    def opened(name: str, size: tuple[int, int] = DESK) -> Any:
        resize(browser, *size)
        browser.get("about:blank")
        browser.get_log("browser")
        browser.get(pages(name).as_uri())
        return browser

    return opened


def find(browser: Any, selector: str) -> list[Any]:
    return list(browser.find_elements("css selector", selector))


def script(browser: Any, body: str, *arguments: object) -> Any:
    return browser.execute_script(body, *arguments)


def opacity(browser: Any, selector: str) -> set[float]:
    body = "return [...document.querySelectorAll(arguments[0])].map(e => +getComputedStyle(e).opacity)"
    script(browser, "document.getAnimations().forEach(a => a.finish())")
    return set(script(browser, body, selector))


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def point_at(browser: Any, element: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    script(browser, "arguments[0].scrollIntoView({block: 'center', inline: 'center'})", element)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")  # it has scrolled
    ActionChains(browser).move_to_element(element).perform()


def choose(browser: Any, selector: str, value: str) -> None:
    body = (
        "const s = document.querySelector(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))"
    )
    script(browser, body, selector, value)


def values(browser: Any, selector: str) -> list[str]:
    return list(script(browser, "return [...document.querySelector(arguments[0]).options].map(o => o.value)", selector))


@pytest.mark.parametrize("name", NAMES)
def test_every_part_answers_without_a_complaint(shown: Callable[..., Any], name: str) -> None:
    page = shown(name)
    for part in PARTS:
        find(page, f"nav a[href='#{part}']")[0].click()
        assert page.current_url.endswith(f"#{part}")
        assert find(page, f"#{part}")[0].size["height"] > 40
    for closed in find(page, "main details:not([open]) > summary"):
        if closed.is_displayed():
            script(page, "arguments[0].scrollIntoView({block: 'center'})", closed)
            closed.click()
    assert find(page, "#all-actions tbody tr")
    for link in find(page, "a.why")[:12]:
        target = link.get_attribute("href").partition("#")[2]
        script(page, "arguments[0].scrollIntoView({block: 'center'})", link)
        link.click()
        assert script(page, "const t = document.getElementById(arguments[0]); return t.open !== false", target)
    for what, rows, parts in product(*(values(page, f"#bars-{key}") for key in ("what", "rows", "parts"))):
        for key, value in (("what", what), ("rows", rows), ("parts", parts)):
            choose(page, f"#bars-{key}", value)
        if what == "0":
            assert find(page, "#bars .seg")
    for button in find(page, "#chips button")[:5]:
        button.click()
        button.click()
    assert page.get_log("browser") == []
    assert script(page, "return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("infeasible", ("why", "limits", "cascade", "search", "tensors", "sources")),
        ("compare", ("table", "bars", "trade", "search", "fusion")),
    ],
)
def test_the_other_pages_answer_too(shown: Callable[..., Any], name: str, parts: tuple[str, ...]) -> None:
    page = shown(name)
    assert [link.get_attribute("href").partition("#")[2] for link in find(page, "nav a")] == list(parts)
    for part in parts:
        find(page, f"nav a[href='#{part}']")[0].click()
        assert page.current_url.endswith(f"#{part}")
        assert find(page, f"#{part}")[0].size["height"] > 40
    for closed in find(page, "main details:not([open]) > summary"):
        script(page, "arguments[0].scrollIntoView({block: 'center'})", closed)
        closed.click()
    for link in find(page, "a.why"):
        script(page, "arguments[0].scrollIntoView({block: 'center'})", link)
        link.click()
    tip = next(element for element in find(page, "main [data-tip]") if element.is_displayed())
    point_at(page, tip)
    assert find(page, "#tip")[0].text == tip.get_attribute("data-tip")
    assert page.get_log("browser") == []
    assert script(page, "return performance.getEntriesByType('resource').length") == 0


def test_tensors_light_up_without_a_mapping(shown: Callable[..., Any]) -> None:
    page = shown("infeasible")
    chip = next(b for b in find(page, "#chips button") if b.text == "T1")
    number = chip.get_attribute("data-t")
    chip.click()
    for picture in ("#limits .chip", f"#cascade rect{ONE}", "#tensors tr"):
        assert opacity(page, f"{picture}[data-t='{number}']") == {1.0}, picture
        assert max(opacity(page, f"{picture}[data-t]:not([data-t='{number}'])")) < 0.3, picture
    assert page.get_log("browser") == []


def test_the_front_is_drawn(shown: Callable[..., Any]) -> None:
    page = shown("pareto")
    find(page, "nav a[href='#front']")[0].click()
    assert len(find(page, "#front .mark.trade.on")) == 15
    first = find(page, "#front details > summary")[0]
    first.click()
    assert "store DRAM:" in find(page, "#front pre")[0].text
    assert page.get_log("browser") == []


def test_a_tensor_lights_up_in_every_picture(shown: Callable[..., Any]) -> None:
    page = shown("gpt3")
    chip = next(b for b in find(page, "#chips button") if b.text == "QK")
    number = chip.get_attribute("data-t")
    choose(page, "#bars-parts", "tensor")
    pictures = {f"#mapping rect{ONE}", f"#cascade rect{ONE}", "#occupancy rect", "#bars .seg", "#tensors tr"}
    point_at(page, find(page, f"#occupancy rect[data-t='{number}']")[0])
    for picture in pictures:
        assert opacity(page, f"{picture}[data-t='{number}']") == {1.0}, picture
        assert max(opacity(page, f"{picture}[data-t]:not([data-t='{number}'])")) < 0.3, picture
    assert find(page, "#tip")[0].text.startswith("QK: ")
    assert opacity(page, "#mapping rect[data-t*=' ']") == {1.0, 0.38}  # the Einsums that touch it stay lit
    point_at(page, find(page, "h1")[0])
    assert opacity(page, "#occupancy rect[data-t]") == {1.0}
    assert page.get_log("browser") == []


def test_the_keyboard_is_enough(shown: Callable[..., Any]) -> None:
    from selenium.webdriver.common.keys import Keys

    page = shown("gpt3")
    focused = "return document.activeElement.textContent"
    press(page, Keys.TAB)
    assert script(page, focused) == "Skip to the summary"
    for _ in range(len(PARTS) + 1):
        press(page, Keys.TAB)
    assert script(page, focused) == "I"
    press(page, Keys.ARROW_RIGHT)
    assert script(page, focused) == "V"
    number = script(page, "return document.activeElement.dataset.t")
    assert opacity(page, f"#occupancy rect[data-t='{number}']") == {1.0}
    press(page, Keys.ENTER)
    assert script(page, "return document.activeElement.getAttribute('aria-pressed')") == "true"
    press(page, Keys.TAB)
    assert max(opacity(page, f"#occupancy rect:not([data-t='{number}'])")) < 0.3
    press(page, Keys.ESCAPE)
    assert opacity(page, "#occupancy rect") == {1.0}
    seen = set()
    for _ in range(60):
        press(page, Keys.TAB)
        seen.add(script(page, "return document.activeElement.id || document.activeElement.className"))
    assert {"bars-what", "bars-rows", "bars-parts", "bars", "window scroll", "why"} <= seen


@pytest.mark.parametrize(("name", "size"), [(n, s) for n in PAGES for s in (DESK, PHONE)])
def test_nothing_sticks_out(shown: Callable[..., Any], name: str, size: tuple[int, int]) -> None:
    page = shown(name, size)
    assert script(page, "return document.documentElement.scrollWidth") <= size[0]
    wide = """return [...document.querySelectorAll('main section > *, .tile, .facts dd')].filter(
      e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.className || e.tagName)"""
    assert script(page, wide) == []
    assert len(page.get_screenshot_as_png()) > 10_000


@pytest.mark.parametrize("name", ["matmul", "gpt3", "large", "infeasible", "compare"])
def test_paper(shown: Callable[..., Any], name: str) -> None:
    page = shown(name)
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    printed = page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True, "printBackground": True})
    content = base64.b64decode(printed["data"])
    assert content.startswith(b"%PDF")
    assert (2 if name in ("infeasible", "compare") else 4) <= content.count(b"/Type /Page\n") <= 20
    assert not find(page, "details.card[open]")  # opened for the printer, closed again
    assert page.get_log("browser") == []


def test_a_large_network_opens_fast(shown: Callable[..., Any], pages: Pages) -> None:
    page = shown("large")
    timing = "const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd / 1000"
    assert 0 < script(page, timing) < SECONDS_TO_OPEN
    assert pages("large").stat().st_size < 5_000_000
    for _ in range(2):
        find(page, "#mapping .pager button")[1].click()
    words = [e.text for e in find(page, "#mapping text")]
    assert any("Einsums 25 to 36 of 320" in text for text in words)
    assert {f"E{i}" for i in range(321)} & set(words) == {f"E{i}" for i in range(24, 36)}
    assert find(page, "#cascade .pager select")[0].get_attribute("value") == "2"
    find(page, "#bars button.all")[0].click()
    assert len(find(page, "#bars .name")) == 320
    find(page, "#find-tensor")[0].send_keys("W25\t")
    assert script(page, "return document.body.classList.contains('lit')")
    assert page.get_log("browser") == []


def test_hostile_names_stay_text(shown: Callable[..., Any]) -> None:
    page = shown("hostile")
    for chip in find(page, "#chips button"):
        chip.click()
    for key, value in (("rows", "tensor"), ("parts", "einsum")):
        choose(page, f"#bars-{key}", value)
    for summary in find(page, "details > summary"):
        script(page, "arguments[0].parentElement.open = true", summary)
    assert not find(page, "img")
    assert not script(page, "return [...document.querySelectorAll('[onload],[onerror],[onmouseover]')].length")
    assert page.get_log("browser") == []
