"""The ATen calls of an exported program as an ONNX `Graph`: names, shapes, constants, one call after the other.

What follows from constants alone is computed by torch if it is small, as in `..onnx.folding`.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ...errors import SpecError
from ...reading.plugins import MISTAKES
from ..onnx.folding import LARGEST
from ..onnx.graph import Array, Graph, OnnxNode, Shape
from ..onnx.load import KEPT, MAX_NODES, MAX_VALUES

VERSION = 18
"""Of ONNX's operators that calls become."""
RANDOM = frozenset("rand randn randint rand_like randn_like randint_like bernoulli multinomial normal uniform".split())
LIKE = frozenset("ones_like zeros_like full_like new_zeros new_ones new_full".split())
"""Constants that take a tensor's shape or type alone."""
_SHORT = {"scaled_dot_product_attention": "sdpa"}
SILENT = frozenset("getitem _assert_tensor_metadata _assert_async _assert_scalar sym_constrain_range_for_size".split())
"""Calls that compute nothing."""


def base_name(target: Any) -> str:
    """The name of what is called, without the overload."""
    schema = getattr(target, "_schema", None)
    name = getattr(target, "__name__", target) if schema is None else schema.name
    return _SHORT.get(found := str(name).rpartition("::")[2], found)


class AtenGraph:
    """An exported program on the way to a `Graph`. values: FX node -> ONNX value, one or several."""

    def __init__(self, torch: Any, program: Any, name: str) -> None:
        self.torch, self.program = torch, program
        self.graph = Graph(name, [], (), (), file=name, source=f"{name}, torch {torch.__version__}")
        self.values: dict[Any, Any] = {}
        self.data: dict[Any, Any] = {}
        self.parameters: dict[Any, str] = {}
        self._used: Counter[str] = Counter()
        self._paths: Counter[str] = Counter()

    def run(self, write: Callable[[AtenCall], None]) -> Graph:
        """The graph. write: adds what a call is. Raises SpecError for sizes that depend on data."""
        nodes = list(self.program.graph.nodes)
        self._placeholders(nodes)
        calls = [node for node in nodes if node.op == "call_function"]
        if len(calls) > MAX_NODES:
            raise SpecError(
                f"the program has {len(calls):,} calls; at most {MAX_NODES:,} are read", file=self.graph.file
            )
        self._paths.update(self.path(node) for node in calls if node.target is not operator.getitem)
        for node in calls:
            self._call(node, write)
        outputs = self.program.graph_signature.user_outputs
        by_name = {node.name: value for node, value in self.values.items()}
        found = [by_name[name] for name in outputs if isinstance(name, str) and name in by_name]
        self.graph.outputs = tuple(dict.fromkeys(name for name in found if isinstance(name, str)))
        return self.graph

    def _placeholders(self, nodes: Sequence[Any]) -> None:
        """Inputs of the module, its parameters and buffers."""
        specs = self.program.graph_signature.input_specs
        inputs = []
        for node, spec in zip((n for n in nodes if n.op == "placeholder"), specs, strict=True):
            if not isinstance(node.meta.get("val"), self.torch.Tensor):
                continue
            given = spec.kind.name == "USER_INPUT"
            name = self.unique(node.name if given else spec.target)
            self.values[node] = name
            self.note(name, node.meta["val"])
            if given:
                inputs.append(name)
                continue
            self.parameters[node] = spec.target
            self._keep(node, name, self.tensor_of(spec.target))
        self.graph.inputs = tuple(inputs)

    def tensor_of(self, target: str) -> Any:
        """A parameter, buffer or constant of the program; None if it has no data."""
        found = self.program.state_dict.get(target, self.program.constants.get(target))
        if not isinstance(found, self.torch.Tensor) or found.device.type == "meta":
            return None
        return None if isinstance(found, self.torch._subclasses.FakeTensor) else found.detach()

    def path(self, node: Any) -> str:
        """The path of the module that a call is in, or of the one whose parameter it takes."""
        stack = list((node.meta.get("nn_module_stack") or {}).values())
        path = str(stack[-1][0]).partition("@")[0] if stack else ""
        for given in node.all_input_nodes:
            owner = self.parameters.get(given, "").rpartition(".")[0]
            if len(owner) > len(path) and f"{owner}.".startswith(f"{path}." if path else ""):
                return owner
        return path

    def unique(self, name: str) -> str:
        """A name that no other value has."""
        self._used[name] += 1
        number = self._used[name]
        return name if number == 1 else self.unique(f"{name}_{number}")

    def note(self, name: str, tensor: Any) -> None:
        """Shape and type of a value. Raises SpecError for sizes that depend on data."""
        if not all(isinstance(size, int) for size in tensor.shape):
            raise SpecError(f"the size {list(tensor.shape)} of {name!r:.80} depends on data", file=self.graph.file)
        self.typed(name, tuple(int(size) for size in tensor.shape), *self.kind(tensor.dtype))
        if prod(self.graph.shapes[name]) > MAX_VALUES:
            raise SpecError(f"tensor {name!r:.80} has more than 2**40 values", file=self.graph.file)

    def typed(self, name: str, shape: Shape, kind: np.dtype[Any], bits: int) -> None:
        self.graph.shapes[name], self.graph.types[name], self.graph.bits[name] = shape, kind, bits

    def kind(self, dtype: Any) -> tuple[np.dtype[Any], int]:
        """NumPy's type of a torch type, and its bits. Types that NumPy lacks are read as float32."""
        bits = 1 if dtype is self.torch.bool else 8 * dtype.itemsize
        try:
            return np.dtype(str(dtype).removeprefix("torch.")), bits
        except TypeError:
            return np.dtype(np.float32), bits

    def constant(self, name: str, value: Any) -> str:
        """A constant that the translation makes."""
        name = self.unique(name)
        array = np.asarray(value)
        self.typed(name, array.shape, array.dtype, 8 * array.dtype.itemsize)
        self.graph.constants[name] = array
        return name

    def _keep(self, node: Any, name: str, tensor: Any) -> None:
        """Make a value a constant, with its data if they are few."""
        small = tensor is not None and tensor.numel() <= KEPT
        self.graph.constants[name] = array_of(tensor) if small else None
        if tensor is not None and tensor.numel() <= LARGEST:
            self.data[node] = tensor

    def _call(self, node: Any, write: Callable[[AtenCall], None]) -> None:
        value = node.meta.get("val")
        single = isinstance(value, self.torch.Tensor)
        if not single and not isinstance(value, (tuple, list)):
            return  # an assertion
        tensors = (value,) if single else tuple(value)
        if node.target is operator.getitem and node.args[0] not in self.data:
            self.values[node] = self.values[node.args[0]][node.args[1]]
            return
        label = base_name(node.target)
        path = self.path(node)
        whole = f"{path}.{label}" if path and self._paths[path] > 1 else path or label
        name = self.unique(whole)
        read = {user.args[1] for user in node.users if user.target is operator.getitem}
        apart = (f"{name}.{i}" if i in read or not i else "" for i in range(len(tensors)))
        names = (name,) if single else tuple(apart)
        for each, tensor in zip(names, tensors, strict=True):
            if each and isinstance(tensor, self.torch.Tensor):
                self.note(each, tensor)
        self.values[node] = name if single else names
        if not self._constant(node, names, label):
            write(AtenCall(self, node, name, names, path, label))

    def _constant(self, node: Any, names: Sequence[str], label: str) -> bool:
        """True if the call yields constants: computed if they are small, else without data."""
        known = all(
            given in self.data or self.values.get(given) in self.graph.constants for given in node.all_input_nodes
        )
        if label in RANDOM or not (known or label in LIKE):
            return False
        found = None
        if prod(self.graph.shapes[names[0]]) <= LARGEST:
            found = self.computed(node)
        if isinstance(found, (tuple, list)):
            self.data[node] = tuple(found)
        for i, name in enumerate(names):
            tensor = found[i] if isinstance(found, (tuple, list)) else found
            if name and len(names) == 1:
                self._keep(node, name, tensor)
            elif name:
                self.graph.constants[name] = None
        self.graph.folded += 1
        return True

    def computed(self, node: Any) -> Any:
        """What a call of constants yields; None if they have no data here."""
        if any(given not in self.data and base_name(node.target) not in LIKE for given in node.all_input_nodes):
            return None

        def load(given: Any) -> Any:
            if given in self.data:
                return self.data[given]
            return self.torch.empty(given.meta["val"].shape, dtype=given.meta["val"].dtype)

        args, kwargs = self.torch.fx.node.map_arg((node.args, dict(node.kwargs)), load)
        try:
            with self.torch.no_grad(), self.torch._subclasses.fake_tensor.unset_fake_temporarily():
                return node.target(*args, **on_cpu(kwargs))
        except MISTAKES:
            return None


def on_cpu(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments with the processor as their device."""
    return {name: "cpu" if name == "device" and value is not None else value for name, value in arguments.items()}


def array_of(tensor: Any) -> Array:
    """The values of a tensor; types that NumPy lacks as float32."""
    found: Array = (tensor.float() if tensor.is_floating_point() else tensor).detach().cpu().numpy()
    return found


class AtenCall:
    """One call: its arguments by the names of its schema, and what it becomes."""

    def __init__(self, whole: AtenGraph, node: Any, name: str, names: tuple[str, ...], path: str, label: str) -> None:
        self.whole, self.graph, self.name = whole, whole.graph, name
        self.names, self.path, self.label = names, path, label
        schema = node.target._schema.arguments if hasattr(node.target, "_schema") else ()
        given = {**dict(zip((argument.name for argument in schema), node.args, strict=False)), **node.kwargs}
        self.arguments: Mapping[str, Any] = {
            argument.name: given.get(argument.name, argument.default_value) for argument in schema
        }
        self.first = next(iter(self.arguments.values()), None)
        self.overload = getattr(node.target, "_overloadname", "")
        self._tensors = node.all_input_nodes

    def get(self, *names: str) -> Any:
        """The first of these arguments that the schema has; None if it has none of them."""
        return next((self.arguments[name] for name in names if name in self.arguments), None)

    def ints(self, *names: str) -> list[int]:
        """An argument that is an integer, or several."""
        value = self.get(*names)
        return [] if value is None else [int(value)] if isinstance(value, (int, float)) else [int(i) for i in value]

    @property
    def out(self) -> Shape:
        return self.graph.shapes[self.names[0]]

    def shape(self, name: str) -> Shape:
        return self.graph.shapes[name]

    @property
    def tensors(self) -> list[str]:
        """All tensors that are read."""
        return [name for name in (self.whole.values[given] for given in self._tensors) if isinstance(name, str)]

    def value(self, given: Any) -> str:
        """The name of an argument: of a tensor, of a number as a constant, or nothing."""
        if given is None:
            return ""
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            return str(self.whole.values[given]) if not isinstance(given, bool) else self.constant(given)
        kinds = {self.graph.types[name].kind for name in (*self.tensors, self.names[0])}
        return self.constant(np.asarray(given, np.float32 if isinstance(given, float) or "f" in kinds else np.int64))

    def tensor(self, *names: str) -> str:
        """As `value`, of the argument of that name, or of the first."""
        return self.value(self.get(*names) if names else self.first)

    def constant(self, value: Any) -> str:
        return self.whole.constant(f"{self.name}.constant", value)

    def part(self, operator: str, *inputs: str, shape: Sequence[int], kind: str = "", **attributes: Any) -> str:
        """A node on the way to the result. kind: a NumPy type; the result's by default."""
        name = self.whole.unique(f"{self.name}.{operator.lower()}")
        of = self.names[0]
        types = (np.dtype(kind), 1 if kind == "bool" else 32) if kind else (self.graph.types[of], self.graph.bits[of])
        self.whole.typed(name, tuple(shape), *types)
        self._append(operator, inputs, (name,), attributes, name)
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> None:
        """The node that yields the result."""
        self._append(operator, inputs, self.names, attributes, self.name, domain)

    def another(self, name: str, operator: str, *inputs: str, **attributes: Any) -> None:
        """The node that yields this one of the results."""
        self._append(operator, inputs, (name,), attributes, name)

    def _append(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: tuple[str, ...],
        attributes: Mapping[str, Any],
        value: str,
        domain: str = "",
    ) -> None:
        leaf = value.removeprefix(f"{self.path}.") if self.path else value
        name = f"{self.path}/{leaf if leaf != self.path else self.label}" if self.path else leaf
        self.graph.nodes.append(OnnxNode(name, operator, domain, tuple(inputs), outputs, attributes, VERSION))
