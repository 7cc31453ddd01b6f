"""Writes model files in GGUF, version 3: as much of the format as a model of plain floats needs."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

ALIGNMENT = 32
_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9

Value: TypeAlias = "bool | int | float | str | Sequence[str] | array[int] | array[float]"


@dataclass(frozen=True, slots=True)
class Tensor:
    """shape: as mathematics has it, rows first. floats: 32 bits each, row after row."""

    shape: tuple[int, ...]
    floats: array[float]


def write_gguf(path: Path, facts: Mapping[str, Value], tensors: Mapping[str, Tensor]) -> None:
    """One file. An ``int`` is written as 32 bits without sign, ``array("i")`` with it."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(facts))]
    for name, value in facts.items():
        head += [_text(name), _value(value)]
    offset = 0
    for name, tensor in tensors.items():
        turned = tuple(reversed(tensor.shape))
        dims = struct.pack(f"<I{len(turned)}Q", len(turned), *turned)
        head += [_text(name), dims, struct.pack("<IQ", 0, offset)]
        offset += len(_padded(tensor.floats.tobytes()))
    with path.open("wb") as file:
        file.write(_padded(b"".join(head)))
        for tensor in tensors.values():
            file.write(_padded(tensor.floats.tobytes()))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", _BOOL, value)
        case int():
            return struct.pack("<II", _U32, value)
        case float():
            return struct.pack("<If", _F32, value)
        case str():
            return struct.pack("<I", _STRING) + _text(value)
        case array():
            kind = _I32 if value.typecode == "i" else _F32
            return struct.pack("<IIQ", _ARRAY, kind, len(value)) + value.tobytes()
        case _:
            head = struct.pack("<IIQ", _ARRAY, _STRING, len(value))
            return head + b"".join(_text(str(each)) for each in value)
