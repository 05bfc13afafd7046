"""Reads what the assembler says with -v: one entry per function."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"ptxas info\s+: Compiling entry function '(?P<name>[^']+)' for '(?P<arch>sm_\w+)'")
_PROPERTIES = re.compile(r"ptxas info\s+: Function properties for (?P<name>\S+)")
_STACK = re.compile(
    r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads"
)
_USED = re.compile(r"ptxas info\s+: Used (?P<registers>\d+) registers(?P<rest>.*)")
_SHARED = re.compile(r"(?P<bytes>\d+) bytes smem")


class PtxasError(ValueError):
    """A log that isn't understood; the message names the line or function."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """One kernel (`is_entry`) or one function that was not inlined. `registers` is None for the latter."""

    name: str
    arch: str
    is_entry: bool
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    registers: int | None = None
    static_shared_bytes: int = 0


def parse(text: str) -> tuple[Function, ...]:
    """All functions in order; PtxasError when a kernel lacks a line, appears twice, or nothing is there."""
    found = tuple(_functions(text.splitlines()))
    entries = [function.name for function in found if function.is_entry]
    if not entries:
        raise PtxasError("the log names no kernel: was it written with -v?")
    if len(set(entries)) != len(entries):
        raise PtxasError("the log names a kernel twice")
    return found


def _functions(lines: Iterable[str]) -> Iterable[Function]:
    """A kernel's block starts with "Compiling", and its own "Used" line ends it."""
    entry, name, arch, stacks = "", "", "", dict[str, Function]()
    for line in lines:
        if started := _ENTRY.search(line):
            _complete(entry)
            entry, arch, stacks = started["name"], started["arch"], {}
        elif properties := _PROPERTIES.search(line):
            name = properties["name"]
        elif stack := _STACK.search(line):
            stacks[name] = _with_stack(name, arch, entry, stack)
        elif used := _USED.search(line):
            yield from _finished(entry, stacks, used)
            entry, stacks = "", {}
    _complete(entry)


def _complete(entry: str) -> None:
    if entry:
        raise PtxasError(f"kernel {entry}: the log says nothing of its registers")


def _with_stack(name: str, arch: str, entry: str, stack: re.Match[str]) -> Function:
    if not entry or not name:
        raise PtxasError(f"a stack line that belongs to no kernel: {stack.group(0)}")
    return Function(
        name=name,
        arch=arch,
        is_entry=name == entry,
        stack_bytes=int(stack["stack"]),
        spill_store_bytes=int(stack["stores"]),
        spill_load_bytes=int(stack["loads"]),
    )


def _finished(entry: str, stacks: dict[str, Function], used: re.Match[str]) -> Iterable[Function]:
    if entry not in stacks:
        raise PtxasError(f"a register line without its kernel's properties: {used.group(0).strip()}")
    shared = _SHARED.search(used["rest"])
    yield from (function for function in stacks.values() if not function.is_entry)
    yield replace(
        stacks[entry],
        registers=int(used["registers"]),
        static_shared_bytes=int(shared["bytes"]) if shared else 0,
    )
