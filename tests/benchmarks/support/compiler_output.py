"""What the compiler leaves of a kernel, written without one: the assembler's log, a cubin, costs."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from benchmarks.static.costs import Costs
from benchmarks.static.ptxas import Function

WARNING = "nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated\n"


def block(function: Function, helpers: str = "") -> str:
    """What the assembler prints of one kernel."""
    shared = f", {function.static_shared_bytes} bytes smem" if function.static_shared_bytes else ""
    return (
        f"ptxas info    : Compiling entry function '{function.name}' for '{function.arch}'\n"
        f"{helpers}{properties(function)}"
        f"ptxas info    : Used {function.registers} registers, used 1 barriers{shared}, 400 bytes cmem[0]\n"
        "ptxas info    : Compile time = 37.359 ms\n"
    )


def properties(function: Function) -> str:
    """The lines on stack and spills."""
    return (
        f"ptxas info    : Function properties for {function.name}\n"
        f"ptxas         .     {function.stack_bytes} bytes stack frame, "
        f"{function.spill_store_bytes} bytes spill "
        f"stores, {function.spill_load_bytes} bytes spill loads\n"
    )


def kernel(name: str = "k", **fields: Any) -> Function:
    defaults: dict[str, Any] = {
        "arch": "sm_70",
        "is_entry": True,
        "stack_bytes": 0,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "registers": 64,
        "static_shared_bytes": 0,
    }
    return Function(name=name, **{**defaults, **fields})


def cost(**fields: Any) -> Costs:
    defaults: dict[str, Any] = {
        "kernel": "k",
        "arch": "sm_70",
        "threads": 256,
        "registers": 64,
        "registers_per_block": 16384,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "stack_bytes": 0,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 0,
        "code_bytes": 128,
        "blocks_per_multiprocessor": 4,
    }
    return Costs(**{**defaults, **fields})


def elf(kernels: Mapping[str, int | None]) -> bytes:
    """A cubin with a code section and, where bounded, a launch bound per kernel."""
    content: dict[str, bytes] = {}
    for name, threads in kernels.items():
        content[f".text.{name}"] = bytes(128)
        bound = b"" if threads is None else struct.pack("<BBHIII", 4, 5, 12, threads, 1, 1)
        content[f".nv.info.{name}"] = bound
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*content, ".shstrtab"))
    body, headers = bytearray(), [bytes(64)]
    for name, data in (*content.items(), (".shstrtab", names)):
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        body += data
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    count = len(headers)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, count, count - 1
    )
    return head + bytes(body) + b"".join(headers)
