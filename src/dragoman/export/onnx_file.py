"""The few parts of the ONNX format that one small model needs, as bytes of protocol buffers.

Numbers of fields are those of onnx.proto3, which are fixed for ever.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FLOAT, INT64 = 1, 7
_IR_VERSION, _OPSET = 8, 13
_INT, _INTS = 2, 7  # kinds of attributes

Array = np.ndarray[Any, Any]


def model_bytes(
    nodes: Sequence[bytes],
    tensors: Mapping[str, Array],
    inputs: Sequence[bytes],
    outputs: Sequence[bytes],
    metadata: Mapping[str, str],
) -> bytes:
    graph = b"".join(
        [
            *(_field(1, node) for node in nodes),
            _field(2, "graph"),
            *(_field(5, _tensor(name, array)) for name, array in tensors.items()),
            *(_field(11, value) for value in inputs),
            *(_field(12, value) for value in outputs),
        ]
    )
    opset = _field(1, "") + _field(2, _OPSET)
    entries = (_field(14, _field(1, key) + _field(2, value)) for key, value in metadata.items())
    return b"".join(
        [
            _field(1, _IR_VERSION),
            _field(2, "dragoman"),
            _field(7, graph),
            _field(8, opset),
            *entries,
        ]
    )


def node(
    operator: str, inputs: Sequence[str], output: str, **attributes: int | Sequence[int]
) -> bytes:
    parts = [*(_field(1, name) for name in inputs), _field(2, output), _field(4, operator)]
    for name, value in attributes.items():
        if isinstance(value, int):
            attribute = _field(3, value) + _field(20, _INT)
        else:
            attribute = b"".join(_field(8, each) for each in value) + _field(20, _INTS)
        parts.append(_field(5, _field(1, name) + attribute))
    return b"".join(parts)


def value_info(name: str, kind: int, dimensions: Sequence[str | int]) -> bytes:
    """Returns an input or output; dimensions by name are free."""
    shape = b"".join(
        _field(1, _field(2, each) if isinstance(each, str) else _field(1, each))
        for each in dimensions
    )
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, shape)))


def _tensor(name: str, array: Array) -> bytes:
    kind = {"float32": FLOAT, "int64": INT64}[array.dtype.name]
    dimensions = b"".join(_field(1, size) for size in array.shape)
    little_endian = array.astype(array.dtype.newbyteorder("<")).tobytes()
    return dimensions + _field(2, kind) + _field(8, name) + _field(9, little_endian)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])
