"""Writes ONNX files: the few parts of the format that a mechanism needs, in the protobuf wire
format.

Tests read what this writes with the `onnx` package and run it with ONNX Runtime; neither is needed
to export.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

OPSET = 17
IR_VERSION = 8
_TYPES = {np.dtype(np.float32): 1, np.dtype(np.int64): 7, np.dtype(np.float64): 11}
DOUBLE = 11


class Graph:
    """Nodes and constants, added in the order in which they run.  Values are matrices with one row
    a report."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._count = 0
        self.operators: set[str] = set()

    def constant(self, value: Any) -> str:
        """A constant; float32 arrays are stored as they are and widened when they are used."""
        array = np.asarray(value)
        if array.dtype not in _TYPES:
            array = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            label = f"c{len(self._constants)}"
            self._constants.append(_tensor(label, array))
            self._known[key] = label
        stored = self._known[key]
        return self.add("Cast", stored, to=DOUBLE) if array.dtype == np.float32 else stored

    def add(self, operator: str, *inputs: Any, **attributes: int | list[int]) -> str:
        """One operator on names, numbers or arrays; gives the name of its output."""
        names = [item if isinstance(item, str) else self.constant(item) for item in inputs]
        self._count += 1
        output = f"v{self._count}"
        node = (
            b"".join(_text(1, name) for name in names)
            + _text(2, output)
            + _text(3, output)
            + _text(4, operator)
        )
        node += b"".join(_block(5, _attribute(key, value)) for key, value in attributes.items())
        self._nodes.append(node)
        self.operators.add(operator)
        return output

    def __getattr__(self, operator: str) -> Callable[..., str]:
        """`graph.Mul(one, other)` adds an operator of ONNX, which all begin with a capital."""
        if not operator[:1].isupper():
            raise AttributeError(operator)
        return partial(self.add, operator)

    def column(self, value: str, number: int) -> str:
        """One column of a matrix, as a matrix of one column."""
        return self.add("Gather", value, np.array([number]), axis=1)

    def model(self, output: str, *, draws: int, version: str) -> bytes:
        """The file: from truths (n, 2) in metres and numbers on [0, 1) (n, draws) to reports (n, 2)
        in metres."""
        last = _text(1, output) + _text(2, "report") + _text(3, "report") + _text(4, "Identity")
        graph = b"".join(_block(1, node) for node in [*self._nodes, last]) + _text(2, "mechanism")
        graph += b"".join(_block(5, constant) for constant in self._constants)
        graph += (
            _block(11, _value("truth", 2))
            + _block(11, _value("chance", draws))
            + _block(12, _value("report", 2))
        )
        opset = _block(8, _text(1, "") + _number(2, OPSET))
        return (
            _number(1, IR_VERSION)
            + _text(2, "sfumato")
            + _text(3, version)
            + _block(7, graph)
            + opset
        )


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _text(field: int, value: str) -> bytes:
    return _block(field, value.encode())


def _attribute(name: str, value: int | list[int]) -> bytes:
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"".join(_number(8, item) for item in value) + _number(20, 7)


def _tensor(name: str, array: np.ndarray) -> bytes:
    dims = b"".join(_number(1, size) for size in array.shape)
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return dims + _number(2, _TYPES[array.dtype]) + _text(8, name) + _block(9, little.tobytes())


def _value(name: str, columns: int) -> bytes:
    shape = _block(1, _text(2, "n")) + _block(1, _number(1, columns))
    return _text(1, name) + _block(2, _block(1, _number(1, DOUBLE) + _block(2, shape)))
