"""Every measured table of the pages: its CSV, the command that measures it, and how its rows are shown."""

from __future__ import annotations

from einloom.published.dataflow_table import table

from . import (
    again,
    auto,
    before,
    beside_perfect,
    convergence,
    damage,
    dataflows,
    explore,
    fadiff,
    first,
    groups,
    imperfect,
    known_optima,
    mappers,
    orders,
    profile_exact,
    programs,
    relaxed,
    sizes,
    speeds,
    starts,
    tilings,
)
from .measured import Column, MeasuredTable, Row, markdown
from .mutants.table import by_folder
from .truth.table import CLAIM_COLUMNS, impossible_table, rare_table


def _fused(command: str) -> str:
    """What a command says of fused loops."""
    return " (at most 1 fused loop)" if "--max-fused-loops 1" in command else ""


def _dataflows(rows: list[Row]) -> str:
    return f"```text\n{table(dataflows.cells_of(rows))}```"


def _mutants(rows: list[Row]) -> str:
    names = ("seed", "part", "mutants", "change nothing", "may change an answer", "caught", "share")
    return markdown([Column(name, name) for name in names], by_folder(rows))


def _gap(text: str) -> str:
    return f"{float(text):.1%}" if text else "-"


def _giga(number: float) -> str:
    return f"{number:,.0f}" if number > 999 else f"{number:.4g}"


PROFILE = "python -m bench.profile_exact gpt3-6.7b:batch=64,tokens=4096 tpu-v4i --objective edp"

TABLES: tuple[MeasuredTable, ...] = (
    MeasuredTable(
        "dataflows",
        "docs/dataflow-table.md",
        "dataflows.csv",
        "python -m bench.dataflows --groups",
        render=_dataflows,
    ),
    MeasuredTable(
        "rtl",
        "docs/fusecu.md",
        "rtl.csv",
        "python -m bench.rtl",
        (
            Column("fabric", "fabric"),
            Column("arrays", lambda row: f"{row['rows']} x {row['columns']}"),
            Column("operations", "operations"),
            Column("every value right", "right"),
            Column("cycles as the model says", "cycles_equal"),
            Column("hold, os, tile, column", lambda r: ", ".join(r[k] for k in ("hold", "os", "tile", "column"))),
            Column("warnings of verilator -Wall", "warnings"),
        ),
    ),
    MeasuredTable(
        "principle-four",
        "docs/principles.md",
        "principles_pairs.csv",
        "python -m bench.principles pairs",
        (
            Column("partial sums", "accounting"),
            Column("classes", "classes"),
            Column("pairs", "pairs"),
            Column("fusing pays", "profitable"),
            Column("missed", "missed"),
            Column("wrongly fused", "wrongly_fused"),
            Column("mean regret", lambda row: f"{float(row['mean_regret']):.1%}"),
            Column("95th percentile", lambda row: f"{float(row['p95_regret']):.1%}"),
            Column("most", lambda row: f"{float(row['max_regret']):.0%}"),
        ),
    ),
    MeasuredTable("explore", "docs/explore.md", "explore.csv", "python -m bench.explore", explore.COLUMNS),
    MeasuredTable(
        "sizes",
        "docs/mapspace.md",
        "sizes.csv",
        "python -m bench.sizes",
        render=sizes.table,
    ),
    MeasuredTable("imperfect", "docs/mapspace.md", "imperfect.csv", "python -m bench.imperfect", imperfect.COLUMNS),
    MeasuredTable(
        "lending",
        "docs/mapspace.md",
        "lending.csv",
        "python -m bench.lending",
        (
            Column("problem", "problem"),
            Column("machine", "machine"),
            Column("own, J s", "own_edp"),
            Column("shared, J s", "shared_edp"),
            Column("times less EDP", "edp"),
            Column("energy", "energy"),
            Column("latency", "latency"),
            Column("gap", "gap"),
            Column("CPU s own", "own_cpu_s"),
            Column("CPU s shared", "shared_cpu_s"),
        ),
    ),
    MeasuredTable(
        "truth",
        "docs/model/trust.md",
        "truth.csv",
        "python -m bench.truth --first 900000 --further 6000 --publish",
        (
            Column("dimension", "dimension"),
            Column("problems", "problems"),
            Column("infeasible", "infeasible"),
            Column("trees priced", "trees"),
            Column("trees executed", "executed"),
            Column("least with another", "least_pair"),
            *(Column(claim, claim) for claim in CLAIM_COLUMNS),
        ),
    ),
    MeasuredTable(
        "truth-rare",
        "docs/model/trust.md",
        "truth-rare.csv",
        "python -m bench.truth --towards 40 --publish",
        render=rare_table,
    ),
    MeasuredTable(
        "truth-impossible",
        "docs/model/trust.md",
        "truth-impossible.csv",
        "python -m bench.truth --impossible --publish",
        render=impossible_table,
    ),
    MeasuredTable(
        "planted",
        "docs/model/trust.md",
        "truth-planted.csv",
        "python -m bench.truth --planted",
        (Column("old mistake", "mistake"), Column("noticed by problem", "problems"), Column("claim", "claim")),
    ),
    MeasuredTable("again", "docs/answers.md", "again.csv", "python -m bench.again", again.COLUMNS),
    MeasuredTable(
        "first",
        "docs/first.md",
        "first.csv",
        "python -m bench.first --seconds 10",
        render=first.table,
    ),
    MeasuredTable(
        "first-networks",
        "docs/first.md",
        "first-networks.csv",
        "python -m bench.first --networks --seconds 10",
        render=first.table,
    ),
    MeasuredTable(
        "first-open",
        "docs/first.md",
        "first-open.csv",
        "python -m bench.first --open --seconds 60",
        render=first.open_table,
    ),
    MeasuredTable(
        "first-hardest",
        "docs/first.md",
        "first-hardest.csv",
        "python -m bench.first --hardest --seconds 60",
        render=first.hard_table,
    ),
    MeasuredTable(
        "looks",
        "docs/answers.md",
        "looks.csv",
        "python -m bench.looks --seconds 4",
        (
            Column("problem", lambda r: f"{r['workload']} on {r['machine']}, {r['objective']}, {r['space']}"),
            Column("looks", "looks"),
            Column("longest step, CPU s", "longest_s"),
            Column("a stop waits, on average", "mean_wait_s"),
            Column("more than 0.3 s", lambda r: f"{float(r['share_late']):.1%}"),
            Column("answer after the look, CPU s", "answer_s"),
            Column("peak, MB", "peak_mb"),
        ),
    ),
    MeasuredTable(
        "overruns",
        "docs/answers.md",
        "overruns.csv",
        "python -m bench.overruns",
        (
            Column("`einloom` …", lambda r: f"`{r['command']}`"),
            Column("process, s", "wall_s"),
            Column("beyond the budget", "beyond_s"),
            Column("of that process, CPU s", "cpu_s"),
            Column("load of the machine", "load"),
        ),
    ),
    MeasuredTable(
        "networks",
        "docs/networks.md",
        "networks.csv",
        "python -m bench.networks",
        (
            Column("network", "network"),
            Column("machine", "machine"),
            Column("Einsums", "einsums"),
            Column("energy, J", "energy_j"),
            Column("gap", lambda row: "proven" if row["gap"] and not float(row["gap"]) else _gap(row["gap"])),
            Column("CPU s", "cpu_s"),
            Column("peak, MB", "peak_mb"),
        ),
    ),
    MeasuredTable(
        "peer",
        "docs/peer.md",
        "peer.csv",
        "python -m bench.peer",
        (
            Column("problem", lambda row: "`" + " ".join(row["einloom_command"].split()[2:4]) + "`"),
            Column("objective", lambda row: row["objective"] + _fused(row["einloom_command"])),
            Column("einloom optimum", lambda row: f"{float(row['einloom_optimum']):.10g}"),
            Column("AccelForge optimum", lambda row: f"{float(row['peer_optimum']):.10g}"),
            Column("difference", lambda row: f"{float(row['relative_difference']):.1e}"),
            Column("einloom CPU s (cold)", lambda row: f"{row['einloom_warm_cpu_s']} ({row['einloom_cold_cpu_s']})"),
            Column("AccelForge CPU s", "peer_cpu_s"),
            Column("ratio", lambda row: f"{float(row['cpu_ratio_warm']):.0f}"),
            Column("peak MB, einloom / AccelForge", lambda row: f"{row['einloom_warm_rss_mb']} / {row['peer_rss_mb']}"),
        ),
    ),
    MeasuredTable(
        "arrays",
        "docs/peer.md",
        "arrays.csv",
        "python -m bench.arrays",
        (
            Column("NumPy", lambda row: f"{float(row['numpy_us']):.3f}"),
            Column("machine code", lambda row: f"{float(row['compiled_us']):.3f}"),
            Column("`evaluate`, one by one", lambda row: f"{float(row['single_us']):.0f}"),
            Column("first compiled call, cold / warm", lambda r: f"{r['first_cold_s']} s / {r['first_warm_s']} s"),
        ),
    ),
    MeasuredTable(
        "scaling",
        "docs/peer.md",
        "scaling.csv",
        "python -m bench.scaling",
        (
            Column("matmuls", "length"),
            Column("CPU s", "cpu_s"),
            Column("ms per Einsum", lambda row: f"{1000 * float(row['cpu_s']) / int(row['length']):.0f}"),
            Column("peak MB", "rss_mb"),
        ),
    ),
    MeasuredTable(
        "before", "docs/peer.md", "before.csv", "python -m bench.before --sources OTHER/src", render=before.table
    ),
    MeasuredTable(
        "beside-perfect",
        "docs/mapspace.md",
        "beside-perfect.csv",
        "python -m bench.beside_perfect",
        beside_perfect.COLUMNS,
    ),
    MeasuredTable(
        "alone",
        "docs/peer.md",
        "alone.csv",
        "python -m bench.alone",
        (
            Column("problem", lambda row: "`" + " ".join(row["command"].split()[2:4]) + "`"),
            Column("objective", "objective"),
            Column("Einsums", "einsums"),
            Column("warm (cold) CPU s", lambda row: f"{row['warm_cpu_s']} ({row['cold_cpu_s']})"),
            Column("peak, MB", "warm_rss_mb"),
            Column("value", lambda row: f"{float(row['value']):.10g}"),
            Column("proof", "guarantee"),
        ),
    ),
    MeasuredTable(
        "agreement",
        "docs/onnx.md",
        "agreement.csv",
        "python -m bench.agreement",
        (
            Column("network", lambda row: f"{row['network']}, {row['size']}"),
            Column("nodes", "nodes"),
            Column("Einsums as read, simplified", lambda row: f"{row['einsums_read']}, {row['einsums']}"),
            Column("tensors compared", lambda row: f"{row['tensors_read']}, {row['tensors']}"),
            Column("worst as read", "worst_read"),
            Column("simplified", "worst"),
            Column("as written", "worst_written"),
            Column("multiplications mapped", lambda row: f"{int(row['mapped']) / int(row['multiplications']):.4g}"),
            Column("cut", lambda row: row["cut"] or "-"),
        ),
    ),
    MeasuredTable(
        "import-faults",
        "docs/onnx.md",
        "agreement-faults.csv",
        "python -m bench.agreement --faults",
        (
            Column("rule", "rule"),
            Column("planted", "fault"),
            Column("shows in", lambda row: row["network"] or "none"),
            Column("worst difference", lambda row: row["difference"] or "-"),
        ),
    ),
    MeasuredTable(
        "coverage",
        "docs/onnx.md",
        "coverage.csv",
        "python -m bench.coverage",
        (
            Column("network", lambda row: f"{row['network']}, {row['size']}"),
            Column("nodes", "nodes"),
            Column("Einsums", "einsums"),
            Column("multiplications, G", lambda row: _giga(int(row["multiplications"]) / 1e9)),
            Column("from ONNX files, G", lambda row: _giga(float(row["onnx_giga"]))),
            Column("mapped", lambda row: f"{int(row['mapped']) / int(row['multiplications']):.4g}"),
            Column("cut", lambda row: row["cut"] or "-"),
        ),
    ),
    MeasuredTable("damage", "docs/onnx.md", "damage.csv", "python -m bench.damage", render=damage.table),
    MeasuredTable("mutants", "docs/model/trust.md", "mutants.csv", "python -m bench.mutants run", render=_mutants),
    MeasuredTable("mappers", "docs/mappers.md", "mappers.csv", "python -m bench.mappers", render=mappers.table),
    MeasuredTable(
        "mappers-tiny",
        "docs/mappers.md",
        "mappers-tiny.csv",
        "python -m bench.mappers --tiny 50 --points 10000",
        render=known_optima.table,
    ),
    MeasuredTable(
        "mappers-below",
        "docs/mappers.md",
        "mappers-below.csv",
        "python -m bench.mappers --below 200 --points 200",
        render=known_optima.table,
    ),
    MeasuredTable("speeds", "docs/mappers.md", "speeds.csv", "python -m bench.speeds --skeletons 10", speeds.COLUMNS),
    MeasuredTable("programs", "docs/running.md", "programs.csv", "python -m bench.programs", render=programs.table),
    MeasuredTable("relaxed", "docs/mappers.md", "relaxed.csv", "python -m bench.relaxed", relaxed.COLUMNS),
    MeasuredTable(
        "auto", "docs/mappers.md", "auto.csv", "python -m bench.auto --again --first-seed 100", render=auto.table
    ),
    MeasuredTable(
        "auto-starts", "docs/mappers.md", "auto-starts.csv", "python -m bench.auto --starts 2", auto.START_COLUMNS
    ),
    MeasuredTable(
        "convergence",
        "docs/mappers.md",
        "convergence.csv",
        "python -m bench.convergence --times 1 --first-seed 100",
        convergence.COLUMNS,
    ),
    MeasuredTable("fadiff", "docs/mappers.md", "fadiff.csv", "python -m bench.fadiff", fadiff.COLUMNS),
    MeasuredTable(
        "tilings",
        "docs/mappers.md",
        "tilings.csv",
        "python -m bench.tilings --points 10000 --seeds 5",
        render=tilings.table,
    ),
    MeasuredTable(
        "analysis",
        "docs/profile.md",
        "analysis.csv",
        "python -m bench.analysis --sources OTHER/src",
        (
            Column("tree", "tree"),
            Column("`legality`, before", "legality_ms_before"),
            Column("after", "legality_ms"),
            Column("`evaluate`, before", "evaluate_ms_before"),
            Column("after", "evaluate_ms"),
        ),
    ),
    MeasuredTable("starts", "docs/exact.md", "starts.csv", "python -m bench.starts", starts.COLUMNS),
    MeasuredTable("groups", "docs/exact.md", "groups.csv", "python -m bench.groups", render=groups.table),
    MeasuredTable("orders", "docs/exact.md", "orders.csv", "python -m bench.orders", orders.COLUMNS),
    MeasuredTable("shares", "docs/exact.md", "groups.csv", "python -m bench.groups", render=groups.shares),
    MeasuredTable("stages", "docs/profile.md", "profile.csv", PROFILE, render=profile_exact.stages_table),
    MeasuredTable("functions", "docs/profile.md", "profile.csv", PROFILE, render=profile_exact.functions_table),
)
