"""Just enough ELF64 to hash the parts of a cubin that decide what it computes. No external tool."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from grouped_attention import cubin_info as info

# Code, constants and per-kernel attributes; initialised globals and shared sizes too, for they change results
# while debug, line-number, symbol and string tables only change with paths and link order.
HASHED_PREFIXES = (".text", ".nv.constant", ".nv.info", ".nv.global", ".nv.shared")
CODE_PREFIX = ".text."
INFO_PREFIX = ".nv.info"

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_NOBITS = 8


class CubinError(ValueError):
    """Bytes that are not a readable little-endian ELF64 file."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """One section: its bytes (empty when it occupies none in the file) and its size in bytes."""

    name: str
    data: bytes
    size_bytes: int


def sections(data: bytes) -> tuple[Section, ...]:
    """All named sections in file order; CubinError when the file is cut short or not ELF64."""
    if len(data) < _HEADER.size or data[:6] != b"\x7fELF\x02\x01":
        raise CubinError("not a little-endian ELF64 file")
    header = _HEADER.unpack_from(data)
    offset, entry_bytes, count, names_index = header[6], header[11], header[12], header[13]
    if count == 0 or entry_bytes != _SECTION.size or names_index >= count:
        raise CubinError("no usable section header table")
    entries = [_unpack_entry(data, offset + index * entry_bytes) for index in range(count)]
    names = _section_bytes(data, entries[names_index])
    return tuple(_section(data, names, entry) for entry in entries[1:])


def digest(data: bytes) -> str:
    """SHA-256 over names and bytes of the deciding sections, sorted; CubinError if there is no code."""
    found = sections(data)
    symbols = _symbols(found)
    chosen = sorted(
        _hashed(section, symbols) for section in found if section.name.startswith(HASHED_PREFIXES)
    )
    if not any(name.startswith(".text") for name, _, _ in chosen):
        raise CubinError("no code section")
    state = hashlib.sha256()
    for name, size_bytes, content in chosen:
        state.update(f"{name}\0{size_bytes}\0{len(content)}\0".encode())
        state.update(content)
    return state.hexdigest()


def code_bytes(data: bytes) -> dict[str, int]:
    """Bytes of machine code per kernel or function name."""
    return {
        section.name.removeprefix(CODE_PREFIX): section.size_bytes
        for section in sections(data)
        if section.name.startswith(CODE_PREFIX)
    }


def max_threads(data: bytes) -> dict[str, int | None]:
    """Most threads of a block per kernel, by its launch bounds; None for a kernel without any."""
    found = {section.name: section.data for section in sections(data)}
    try:
        return {name: info.max_threads(found.get(f"{INFO_PREFIX}.{name}", b"")) for name in code_bytes(data)}
    except ValueError as error:
        raise CubinError(str(error)) from error


def _hashed(section: Section, symbols: Sequence[str]) -> tuple[str, int, bytes]:
    if section.name.startswith(INFO_PREFIX):
        content = info.stable(section.data, symbols)
        return section.name, len(content), content
    return section.name, section.size_bytes, section.data


def _symbols(found: Sequence[Section]) -> tuple[str, ...]:
    data = {section.name: section.data for section in found}
    return info.symbol_names(data.get(".symtab", b""), data.get(".strtab", b""))


def _unpack_entry(data: bytes, offset: int) -> tuple[int, ...]:
    if offset + _SECTION.size > len(data):
        raise CubinError("section header table runs past the end of the file")
    return _SECTION.unpack_from(data, offset)


def _section_bytes(data: bytes, entry: tuple[int, ...]) -> bytes:
    kind, offset, size = entry[1], entry[4], entry[5]
    if kind == _NOBITS:
        return b""
    if offset + size > len(data):
        raise CubinError("a section runs past the end of the file")
    return data[offset : offset + size]


def _section(data: bytes, names: bytes, entry: tuple[int, ...]) -> Section:
    start = entry[0]
    end = names.find(b"\0", start)
    if start >= len(names) or end < 0:
        raise CubinError("a section name lies outside the name table")
    name = names[start:end].decode("utf-8", "backslashreplace")
    return Section(name=name, data=_section_bytes(data, entry), size_bytes=entry[5])
