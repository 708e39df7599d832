"""The FuseCU paper's principles for traffic between one buffer and the memory above, and the exact closed forms beside
them: one matrix multiplication (`matmul`), principles 1 to 3 as printed (`rules`), pairs and principle 4 (`pairs`), the
mapping trees (`trees`) and the method (`method`). docs/principles.md."""

from .method import Principles as Principles
