"""The attribute records of a cubin's .nv.info sections, with symbols by name instead of by index.

An index says only where a symbol stands in its table, and that shifts when line tables come or go.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_THREADS = 0x05

_SIZED = 4  # a record's payload follows it; the other formats hold at most 16 bits in the record itself
# Records that start with a symbol index: parameter bank, frame size, stack sizes, register count.
_OF_A_SYMBOL = frozenset({0x0A, 0x11, 0x12, 0x23, 0x2F})
_HEAD = struct.Struct("<BBH")
_SYMBOL = struct.Struct("<IBBHQQ")


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """One record: its kind, and its payload in bytes."""

    kind: int
    payload: bytes


def attributes(data: bytes) -> tuple[Attribute, ...]:
    """The records of one .nv.info section; ValueError when it is cut short."""
    return tuple(_walk(data))


def stable(data: bytes, symbols: Sequence[str]) -> bytes:
    """The records of a section in sorted order, symbols by name. What can't be read is returned as it is."""
    try:
        return b"\0".join(sorted(_named(attribute, symbols) for attribute in _walk(data)))
    except ValueError:
        return data


def symbol_names(table: bytes, names: bytes) -> tuple[str, ...]:
    """Names of an ELF64 symbol table's entries, in order."""
    whole = len(table) - len(table) % _SYMBOL.size
    return tuple(_name(names, entry[0]) for entry in _SYMBOL.iter_unpack(table[:whole]))


def max_threads(data: bytes) -> int | None:
    """Most threads of a block by the kernel's launch bounds, None without any; ValueError when unreadable."""
    for attribute in _walk(data):
        if attribute.kind == MAX_THREADS and len(attribute.payload) == 12:
            x, y, z = struct.unpack("<III", attribute.payload)
            return int(x * y * z)
    return None


def _walk(data: bytes) -> Iterator[Attribute]:
    at = 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise ValueError("an attribute record is cut short")
        form, kind, value = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        size = value if form == _SIZED else 0
        if at + size > len(data):
            raise ValueError("an attribute record is cut short")
        yield Attribute(kind=kind, payload=data[at : at + size] if size else struct.pack("<H", value))
        at += size


def _named(attribute: Attribute, symbols: Sequence[str]) -> bytes:
    payload = attribute.payload
    if attribute.kind in _OF_A_SYMBOL and len(payload) >= 4:
        index = struct.unpack_from("<I", payload)[0]
        if index >= len(symbols):
            raise ValueError("a record names a symbol that doesn't exist")
        payload = symbols[index].encode() + b"=" + payload[4:]
    return bytes([attribute.kind]) + len(payload).to_bytes(4, "little") + payload


def _name(names: bytes, start: int) -> str:
    end = names.find(b"\0", start)
    return names[start : end if end >= 0 else len(names)].decode("utf-8", "backslashreplace")
