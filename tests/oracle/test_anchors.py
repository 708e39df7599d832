"""The oracle against numbers worked out by hand (conformance page, section "Small cases"), one bit per value."""

from __future__ import annotations

from cases import arrayed, cascade, energy, machine, simple, tree
from einloom.machine.levels import Axis, ComputeUnit, Fanout, Machine, Memory
from einloom.oracle import Simulation, simulate
from einloom.workload.einsum import Workload
from einloom.workload.selectors import selector

FOUR = {"m": 4, "n": 4, "k": 4}


def matmul() -> Workload:
    return cascade("E: Z[m,n] = A[m,k] * B[k,n]", FOUR)


def run(workload: Workload, on: Machine, text: str) -> Simulation:
    found = simulate(workload, on, tree(text))
    assert found.reasons == ()
    assert found.correct
    return found


def moved(found: Simulation, memory: str, tensor: str) -> tuple[int, int]:
    return found.count(memory, tensor, "read"), found.count(memory, tensor, "write")


def latency(found: Simulation, on: Machine) -> float:
    """Rule `einsum` with shared ports: per Einsum the slowest component, summed."""
    total = 0.0
    for einsum in found.operations:
        busy: dict[str, float] = {}
        for (name, component, action), amount in found.busiest.items():
            if name != einsum:
                continue
            if action == "compute":
                rate = on.unit(component).throughput
            else:
                memory = on.memory(component)
                rate = memory.read_throughput if action == "read" else memory.write_throughput
            if rate is not None:
                busy[component] = busy.get(component, 0.0) + amount / rate
        total += max(busy.values(), default=0.0)
    return total


MM = "DRAM[A B Z] "
INNER = "E.m:4 E.n:4 E.k:4 !E@MAC"


def test_A0_no_buffer() -> None:
    found = run(matmul(), simple(), MM + INNER)
    assert moved(found, "DRAM", "A") == (64, 0)
    assert moved(found, "DRAM", "Z") == (48, 64)
    assert energy(found) == 304
    assert latency(found, simple()) == 64


def test_A1_all_tensors_whole_in_the_buffer() -> None:
    found = run(matmul(), simple(), MM + "GLB[A B Z] " + INNER)
    assert [moved(found, "GLB", t) for t in "ABZ"] == [(64, 16), (64, 16), (64, 64)]
    assert [moved(found, "DRAM", t) for t in "ABZ"] == [(16, 0), (16, 0), (0, 16)]
    assert energy(found) == 400
    assert found.occupancy["GLB"] == 48
    lowered = run(matmul(), simple(), MM + "GLB[A B] E.m:4 E.n:4 GLB[Z] E.k:4 !E@MAC")
    assert energy(lowered) == 400
    assert lowered.occupancy["GLB"] == 33


def test_A2_store_under_an_irrelevant_loop_is_stationary() -> None:
    found = run(matmul(), simple(), MM + "E.k:2 GLB[Z] E.m:4 E.n:4 E.k:2 !E@MAC")
    assert energy(found) == 336
    assert moved(found, "DRAM", "Z") == (0, 16)
    assert found.occupancy["GLB"] == 16


def test_A2_with_the_store_lowered_spills_partial_sums() -> None:
    text = MM + "E.k:2 E.m:4 E.n:4 GLB[Z] E.k:2 !E@MAC"
    found = run(matmul(), simple(), text)
    assert moved(found, "DRAM", "Z") == (16, 32)
    assert moved(found, "GLB", "Z") == (80, 80)
    assert energy(found) == 400
    assert found.occupancy["GLB"] == 1
    once = run(matmul(), machine(*simple().levels, partial_sums="once"), text)
    assert moved(once, "DRAM", "Z") == (0, 32)
    assert moved(once, "GLB", "Z") == (80, 64)


def test_A3_one_result_at_a_time() -> None:
    found = run(matmul(), simple(), MM + "E.m:4 E.n:4 GLB[Z] E.k:4 !E@MAC")
    assert moved(found, "GLB", "Z") == (64, 64)
    assert moved(found, "DRAM", "Z") == (0, 16)
    assert energy(found) == 336
    assert found.occupancy["GLB"] == 1


def test_A4_tiles_of_two() -> None:
    found = run(matmul(), simple(), MM + "E.m:2 E.n:2 E.k:2 GLB[A B Z] E.m:2 E.n:2 E.k:2 !E@MAC")
    assert energy(found) == 464
    assert found.occupancy["GLB"] == 12
    lowered = run(matmul(), simple(), MM + "E.m:2 E.n:2 E.k:2 GLB[A B] E.m:2 E.n:2 GLB[Z] E.k:2 !E@MAC")
    assert moved(lowered, "GLB", "Z") == (80, 80)
    assert energy(lowered) == 528
    assert lowered.occupancy["GLB"] == 9


def test_A5_and_A6_one_operand_in_the_buffer() -> None:
    for text in (INNER, "E.n:4 E.m:4 E.k:4 !E@MAC"):
        found = run(matmul(), simple(), MM + "GLB[A] " + text)
        assert moved(found, "GLB", "A") == (64, 16)
        assert moved(found, "DRAM", "B") == (64, 0)
        assert moved(found, "DRAM", "Z") == (48, 64)
        assert energy(found) == 336
        assert found.occupancy["GLB"] == 16
    lowered = run(matmul(), simple(), MM + "E.m:4 GLB[A] E.n:4 E.k:4 !E@MAC")
    assert energy(lowered) == 336
    assert lowered.occupancy["GLB"] == 4


PREFIX = MM + "GLB[A B Z] "


def test_B1_and_B2_outputs_spread() -> None:
    text = PREFIX + "E.n:4@X Reg[A B Z] E.m:4 E.k:4 !E@MAC"
    found = run(matmul(), arrayed(), text)
    assert [moved(found, "GLB", t) for t in "ABZ"] == [(16, 16), (16, 16), (16, 16)]
    assert [moved(found, "Reg", t) for t in "ABZ"] == [(64, 64), (64, 16), (64, 64)]
    assert energy(found) == 544
    assert latency(found, arrayed()) == 84
    assert found.busiest["E", "MAC", "compute"] == 16
    assert found.occupancy == {"DRAM": 48, "GLB": 48, "Reg": 16 + 4 + 4}
    found = run(matmul(), arrayed("nothing", "nothing"), text)
    assert moved(found, "GLB", "A") == (64, 16)
    assert energy(found) == 592
    assert latency(found, arrayed()) == 84
    assert found.busiest["E", "GLB", "read"] / 16 + found.busiest["E", "GLB", "write"] / 8 == 12


def test_B3_and_B4_reduced_rank_spread() -> None:
    text = PREFIX + "E.k:4@X Reg[A B Z] E.m:4 E.n:4 !E@MAC"
    found = run(matmul(), arrayed(), text)
    assert [moved(found, "Reg", t) for t in "ABZ"] == [(64, 16), (64, 16), (64, 64)]
    assert energy(found) == 496
    assert latency(found, arrayed()) == 72
    found = run(matmul(), arrayed("nothing", "nothing"), text)
    assert moved(found, "GLB", "Z") == (16, 64)
    assert energy(found) == 544
    assert latency(found, arrayed()) == 72


def test_B5_and_B6_bypassed_registers() -> None:
    found = run(matmul(), arrayed(), PREFIX + "E.n:4@X Reg[B] E.m:4 E.k:4 !E@MAC")
    assert [moved(found, "GLB", t) for t in "ABZ"] == [(16, 16), (16, 16), (64, 64)]
    assert energy(found) == 384
    assert latency(found, arrayed()) == 24
    found = run(matmul(), arrayed(), PREFIX + "E.k:4@X Reg[B] E.m:4 E.n:4 !E@MAC")
    assert [moved(found, "GLB", t) for t in "ABZ"] == [(64, 16), (16, 16), (16, 16)]
    assert energy(found) == 336
    assert latency(found, arrayed()) == 24


def test_B7_imperfect_spatial_tiles() -> None:
    workload = cascade("E: Z[m,n] = A[m,k] * B[k,n]", {"m": 4, "n": 6, "k": 4})
    found = run(workload, arrayed(), PREFIX + "E.n:2/4 E.n:4@X Reg[A B Z] E.m:4 E.k:4 !E@MAC")
    assert found.busiest["E", "MAC", "compute"] == 32
    assert energy(found) == 760
    assert latency(found, arrayed()) == 152
    found = run(workload, arrayed(), PREFIX + "E.n:2/3 E.n:3@X Reg[A B Z] E.m:4 E.k:4 !E@MAC")
    assert energy(found) == 744
    assert latency(found, arrayed()) == 152


def test_sliding_windows() -> None:
    conv = cascade("E: O[p] = I[p+r] * F[r]", {"p": 8, "r": 3})
    on = simple(2.0)
    top = "DRAM[I F O] "
    v0 = run(conv, on, top + "GLB[I] E.p:8 E.r:3 !E@MAC")
    assert (moved(v0, "DRAM", "I"), moved(v0, "GLB", "I")) == ((10, 0), (24, 10))
    assert (energy(v0), latency(v0, on), v0.occupancy["GLB"]) == (132, 37, 10)
    lowered = run(conv, on, top + "E.p:8 GLB[I] E.r:3 !E@MAC")
    assert (energy(lowered), latency(lowered, on), lowered.occupancy["GLB"]) == (132, 37, 3)
    v1 = run(conv, on, top + "E.p:4 GLB[I] E.p:2 E.r:3 !E@MAC")
    assert (moved(v1, "DRAM", "I")[0], v1.occupancy["GLB"]) == (10, 4)
    v1_lowered = run(conv, on, top + "E.p:4 E.p:2 GLB[I] E.r:3 !E@MAC")
    assert (moved(v1_lowered, "DRAM", "I")[0], v1_lowered.occupancy["GLB"]) == (16, 3)
    v2 = run(conv, on, top + "GLB[I] E.p:4 GLB[F] E.p:2 E.r:3 !E@MAC")
    assert (energy(v2), moved(v2, "DRAM", "F")[0]) == (138, 3)
    v3 = run(conv, on, top + "E.r:3 GLB[I] E.p:8 !E@MAC")
    assert moved(v3, "DRAM", "I")[0] == 10
    v3_lowered = run(conv, on, top + "E.r:3 E.p:8 GLB[I] !E@MAC")
    assert (moved(v3_lowered, "DRAM", "I")[0], v3_lowered.occupancy["GLB"]) == (24, 1)


def test_sliding_windows_with_stride() -> None:
    conv = cascade("E: O[p] = I[2*p+r] * F[r]", {"p": 8, "r": 3})
    on = simple(2.0)
    above = run(conv, on, "DRAM[I F O] GLB[I] E.p:8 E.r:3 !E@MAC")
    assert (moved(above, "DRAM", "I")[0], energy(above)) == (17, 146)
    below = run(conv, on, "DRAM[I F O] E.p:4 GLB[I] E.p:2 E.r:3 !E@MAC")
    assert moved(below, "DRAM", "I")[0] == 17


def test_only_the_sliding_loop_keeps() -> None:
    conv = cascade("E: O[k,p,q] = I[p+r,q+s] * F[k,r,s]", {"k": 2, "p": 4, "q": 4, "r": 3, "s": 3})
    inside = "E.p:2 E.q:4 E.r:3 E.s:3 !E@MAC"
    found = run(conv, simple(), "DRAM[I F O] E.k:2 E.p:2/2 GLB[I] " + inside)
    assert moved(found, "DRAM", "I")[0] == 72
    higher = run(conv, simple(), "DRAM[I F O] GLB[I] E.k:2 E.p:2/2 " + inside)
    assert moved(higher, "DRAM", "I")[0] == 36


def pair() -> Workload:
    text = "E0: T1[m,a] = T0[m,k] * W0[k,a]\nE1: T2[m,b] = T1[m,a] * W1[a,b]"
    return cascade(text, {"m": 4, "k": 4, "a": 4, "b": 4})


LEAF0 = "E0.a:4 E0.k:4 !E0@MAC"
LEAF1 = "E1.a:4 E1.b:4 !E1@MAC"
TOP = "DRAM[T0 T2 W0 W1] "


def test_R1_weights_above_the_shared_loop() -> None:
    found = run(pair(), simple(2.0), TOP + f"GLB[W0 W1] E0.m,E1.m:4 GLB[T0 T2] GLB[T1] {{ {LEAF0} }} {{ {LEAF1} }}")
    assert (energy(found), latency(found, simple(2.0)), found.occupancy["GLB"]) == (736, 128, 40)


def test_R2_unfused() -> None:
    text = f"DRAM[T0 T1 T2 W0 W1] {{ GLB[W0] E0.m:4 {LEAF0} }} {{ GLB[W1] E1.m:4 {LEAF1} }}"
    found = run(pair(), simple(2.0), text)
    assert (energy(found), latency(found, simple(2.0)), found.occupancy["GLB"]) == (672, 192, 16)


def test_R3_intermediate_whole() -> None:
    text = TOP + f"GLB[T1] {{ GLB[W0] E0.m:4 {LEAF0} }} {{ GLB[W1] E1.m:4 {LEAF1} }}"
    found = run(pair(), simple(2.0), text)
    assert (energy(found), latency(found, simple(2.0)), found.occupancy["GLB"]) == (672, 128, 32)


def test_R4_and_R5_weights_in_branches() -> None:
    lowered = "E0.m,E1.m:4 GLB[T1] {{ E0.a:4 {0}E0.k:4 {1}!E0@MAC }} {{ E1.a:4 E1.b:4 GLB[W1] !E1@MAC }}"
    found = run(pair(), simple(2.0), TOP + lowered.format("", "GLB[W0] "))
    assert (energy(found), latency(found, simple(2.0)), found.occupancy["GLB"]) == (864, 152, 5)
    found = run(pair(), simple(2.0), TOP + "GLB[W0] " + lowered.format("", ""))
    assert (energy(found), latency(found, simple(2.0)), found.occupancy["GLB"]) == (768, 152, 21)


def test_copies() -> None:
    text = "C: I[m,k] = copy(J[m,k])\nE0: X[m,n] = I[m,k] * A[k,n]\nE1: Y[m,n] = I[m,k] * B[k,n]"
    workload = cascade(text, FOUR)
    leaves = "{ C.m:4 C.k:4 !C } { E0.m:4 E0.n:4 E0.k:4 !E0@MAC } { E1.m:4 E1.n:4 E1.k:4 !E1@MAC }"
    on = simple(2.0)
    c1 = run(workload, on, "DRAM[J A B X Y] GLB[I] " + leaves)
    assert (energy(c1), latency(c1, on)) == (640, 8 + 88 + 88)
    assert [moved(c1, "DRAM", "J"), moved(c1, "GLB", "I")] == [(16, 0), (128, 16)]
    c2 = run(workload, on, "DRAM[J A B X Y I] " + leaves)
    assert (energy(c2), latency(c2, on)) == (608, 240)
    kept = cascade(text, FOUR, persistent=("A", "B"), repeat=3)
    c3 = run(kept, on, "DRAM[J X Y] GLB[A B] GLB[I] " + leaves)
    assert (energy(c3), latency(c3, on), c3.occupancy["GLB"]) == (3 * 640, 3 * (8 + 64 + 64), 48 + 48 + 16)


def test_nested_splits_are_one_schedule() -> None:
    text = "E0: X[m,n] = A[m,k] * B[k,n]\nE1: Y[n,q] = C[n,j] * D[j,q]\nE2: Z[m,q] = X[m,n] * Y[n,q]"
    workload = cascade(text, {"m": 4, "n": 4, "k": 4, "j": 4, "q": 4})
    e0, e1, e2 = (
        "E0.m:4 E0.n:4 E0.k:4 !E0@MAC",
        "E1.n:4 E1.q:4 E1.j:4 !E1@MAC",
        "E2.m:4 E2.q:4 E2.n:4 !E2@MAC",
    )
    flat = run(workload, simple(), f"DRAM[A B C D Z] GLB[X Y] {{ {e0} }} {{ GLB[D] {e1} }} {{ {e2} }}")
    deep = run(
        workload,
        simple(),
        f"DRAM[A B C D Z] GLB[X] {{ {e0} }} {{ GLB[Y] {{ GLB[D] {e1} }} {{ {e2} }} }}",
    )
    assert flat.occupancy["GLB"] == deep.occupancy["GLB"] == 48
    assert flat.counts == deep.counts


def test_R6_alive_through_an_unrelated_einsum() -> None:
    text = "E0: X[m,n] = A[m,k] * B[k,n]\nE1: Y[m,n] = C[m,k] * D[k,n]\nE2: Z[m,n] = X[m,n] * Y[m,n]"
    found = run(
        cascade(text, FOUR),
        simple(),
        "DRAM[A B C D Z] GLB[X Y] { E0.m:4 E0.n:4 E0.k:4 !E0@MAC } "
        "{ GLB[C] E1.m:4 E1.n:4 E1.k:4 !E1@MAC } { E2.m:4 E2.n:4 !E2@MAC }",
    )
    assert found.occupancy["GLB"] == 48


def test_a_producer_follows_its_consumers_halo() -> None:
    text = "E0: T[x] = A[x,k] * B[k]\nE1: O[p] = T[p+r] * F[r]"
    workload = cascade(text, {"x": 10, "k": 2, "p": 8, "r": 3})
    found = run(
        workload,
        simple(),
        "DRAM[A B F O] E0.x,E1.p:4/2 GLB[T] { E0.x:4/1 E0.k:2 !E0@MAC } { E1.p:2 E1.r:3 !E1@MAC }",
    )
    assert found.operations == {"E0": 20, "E1": 24}
    assert moved(found, "GLB", "T") == (10 + 24, 20)
    assert found.occupancy["GLB"] == 4


def test_illegal_trees_say_why() -> None:
    text = "E0: T[x] = A[x,k] * B[k]\nE1: O[p] = T[p+r] * F[r]"
    workload = cascade(text, {"x": 10, "k": 2, "p": 8, "r": 3})
    dropped = simulate(
        workload,
        simple(),
        tree("DRAM[A B F O] E0.x,E1.p:4/2 E1.r:3 GLB[T] { E0.x:4/1 E0.k:2 !E0@MAC } { E1.p:2 !E1@MAC }"),
    )
    assert any(reason.startswith("recomputation") for reason in dropped.reasons)
    unfinished = simulate(
        workload,
        simple(),
        tree("DRAM[A B F O T] E0.k:2 { E0.x:10 !E0@MAC } { E1.p:8 E1.r:3 !E1@MAC }"),
    )
    assert any(reason.startswith("unfinished") for reason in unfinished.reasons)
    concurrent = simulate(matmul(), simple(), tree("DRAM[A B Z] E.m:4 !E@MAC"))
    assert not concurrent.correct and concurrent.reasons[0].startswith("structure")


def test_V_projection_of_gpt3_in_small() -> None:
    """The published mapping of the V projection, scaled down: a bypassed fanout, a local buffer and a weight array."""
    workload = cascade("E: V[m,e] = I[m,d] * W[e,d]", {"m": 3, "e": 8, "d": 6})
    on = machine(
        Memory("DRAM"),
        Memory("GLB"),
        Fanout("Z", (Axis("Z", 4, selector("nothing"), selector("nothing")),)),
        Memory("LB"),
        Fanout(
            "A",
            (
                Axis("ri", 2, selector("input"), selector("nothing")),
                Axis("ro", 3, selector("nothing"), selector("output")),
            ),
        ),
        Memory("Reg"),
        ComputeUnit("MAC"),
    )
    found = run(
        workload,
        on,
        "DRAM[W] GLB[I V] E.e:1 E.e:4/2@Z LB[V] E.d:2/3 LB[I] E.d:3@ro E.e:2@ri Reg[W] E.m:3 !E@MAC",
    )
    assert moved(found, "DRAM", "W") == (48, 0)
    assert moved(found, "GLB", "I") == (3 * 6 * 4, 0)
    assert moved(found, "LB", "I") == (3 * 6 * 4, 3 * 6 * 4)
    assert moved(found, "GLB", "V") == (0, 24)
    assert moved(found, "LB", "V") == (24 + 24, 48)
