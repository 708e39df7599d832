"""The problems on which einloom and AccelForge meet: names of the zoo, an objective, a limit on fused loops."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BenchProblem:
    """One search. slow: the peer needs more than about a minute of CPU time for it, so `--quick` leaves it out.
    dataflow: whose limits hold."""

    name: str
    workload: str
    machine: str
    objective: str = "energy"
    max_fused_loops: int | None = None
    slow: bool = False
    dataflow: str | None = None


LAYER = "gpt3-6.7b:batch=1,tokens=2048"
PAIR = "matmuls:n=2,m=64,kn=64,bits=8"
PROBLEMS = (
    BenchProblem("matmul-simple", "matmuls:n=1,m=64,kn=64,bits=8", "simple:dram_energy=10,glb_bits=4096"),
    BenchProblem(
        "matmul-simple-edp",
        "matmuls:n=1,m=64,kn=64,bits=8",
        "simple:dram_energy=10,glb_bits=4096,glb_throughput=2",
        "edp",
    ),
    BenchProblem("mini-pair-simple", "matmuls:n=2,m=8,kn=8,bits=8", "simple:dram_energy=10,glb_bits=512"),
    BenchProblem(
        "mini-pair-simple-latency",
        "matmuls:n=2,m=8,kn=8,bits=8",
        "simple:dram_energy=10,glb_bits=512,glb_throughput=2",
        "latency",
    ),
    BenchProblem("pair-simple", PAIR, "simple:dram_energy=10,glb_bits=16384"),
    BenchProblem("pair-two-level", PAIR, "two-level"),
    BenchProblem("pair-nvdla", PAIR, "nvdla"),
    BenchProblem("matmul-tpu-edp", "matmuls:n=1,m=2048,kn=4096,bits=8", "tpu-v4i", "edp"),
    BenchProblem("pair-tpu", PAIR, "tpu-v4i"),
    BenchProblem("pair-edge", PAIR, "ffm-edge"),
    BenchProblem("diamond-simple", "residual-diamond", "simple:dram_energy=10,glb_bits=512"),
    BenchProblem("convolutions-simple", "conv-chain:h=6,w=6,c=2,l=2,k=2", "simple:dram_energy=10,glb_bits=4096"),
    BenchProblem("chain4-ffm75", "matmuls-ffm75:n=4", "simple:dram_energy=100,glb_bits=134217728"),
    BenchProblem("mobilenet-two-level", "mobilenet-block", "two-level"),
    BenchProblem("chain16-simple", "matmuls:n=16,m=8192,kn=4096,bits=8", "simple:dram_energy=100,glb_bits=8388608"),
    BenchProblem("gpt3-t256-two-level", "gpt3-6.7b:batch=1,tokens=256", "two-level", slow=True),
    BenchProblem("gpt3-b1-energy", LAYER, "tpu-v4i", "energy", 1, slow=True),
    BenchProblem("gpt3-b1-edp", LAYER, "tpu-v4i", "edp", slow=True),
    BenchProblem("gpt3-b64-edp", "gpt3-6.7b:batch=64,tokens=4096", "tpu-v4i", "edp", slow=True),
)
ALONE = (
    BenchProblem("gpt3-b64-edp", "gpt3-6.7b:batch=64,tokens=4096", "tpu-v4i", "edp"),
    BenchProblem("gpt3-b1-pareto", LAYER, "tpu-v4i", "pareto"),
    BenchProblem("gpt3-b1-32-layers-edp", f"{LAYER},layers=32", "tpu-v4i", "edp"),
    BenchProblem("llama3-8b-4-layers-edp", "llama3-8b:batch=1,tokens=2048,layers=4", "tpu-v4i", "edp"),
    BenchProblem("resnet18-energy", "resnet18", "simple:dram_energy=100,glb_bits=8388608"),
    BenchProblem("llama3-8b-32-layers-edp", "llama3-8b:batch=1,tokens=2048,layers=32", "tpu-v4i", "edp"),
    BenchProblem("vgg16-tpu-edp", "vgg16", "tpu-v4i", "edp"),
    BenchProblem("vgg16-energy", "vgg16", "simple:dram_energy=100,glb_bits=8388608"),
)
