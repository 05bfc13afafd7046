"""Memory that calls keep: what is in use before and after a thousand of them, in this process.

A pool that grows to its size is no leak, and may take thousands of calls for it (Python's own objects on
AddressSanitizer's heap do): only growth that ten rounds in a row repeat counts. A real leak repeats in all.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

CALLS, WARM_UP_CALLS, ROUNDS = 1000, 100, 10
# The least growth in bytes that counts: 16 a call of heap, a page a call of other memory; a GPU's driver
# hands out 2 MiB at a time.
LIMITS_BYTES = {"heap": 16 * CALLS, "resident": mmap.PAGESIZE * CALLS, "device": 2 << 20}
WORD = "kept"

Meter = Callable[[], int]
Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Bytes that every round added at least, by meter."""

    bytes: Mapping[str, int]

    @property
    def text(self) -> str:
        """All meters, for the record."""
        return ", ".join(f"{name} {count:+}" for name, count in self.bytes.items())

    @property
    def complaint(self) -> str | None:
        """The meters that are over their limits."""
        over = [
            f"{count} bytes of {name} memory, {count / CALLS:.0f} a call"
            for name, count in self.bytes.items()
            if count >= LIMITS_BYTES[name]
        ]
        return f"{WORD} {' and '.join(over)}, after {CALLS} calls" if over else None


def growth(call: Call, meters: Mapping[str, Meter]) -> Growth:
    """Call until the growth is within the limits, at most ten rounds of a thousand."""
    for _ in range(WARM_UP_CALLS):
        call()
    least: dict[str, int] = {}
    for _ in range(ROUNDS):
        now = _round(call, meters)
        least = {name: min(count, least.get(name, count)) for name, count in now.items()}
        if Growth(bytes=least).complaint is None:
            break
    return Growth(bytes=least)


def _round(call: Call, meters: Mapping[str, Meter]) -> dict[str, int]:
    gc.collect()
    before = {name: read() for name, read in meters.items()}
    for _ in range(CALLS):
        call()
    gc.collect()
    return {name: read() - before[name] for name, read in meters.items()}


def meters(backend: str) -> dict[str, Meter]:
    """What can be measured here. Under AddressSanitizer freed memory stays resident, so only its heap is."""
    checked = _checked_heap()
    if checked is not None:
        return {"heap": checked}
    found = {"heap": _heap(), "resident": _resident}
    return {**found, "device": _device} if backend == "cuda" else found


def _checked_heap() -> Meter | None:
    """AddressSanitizer's own count, where it is loaded."""
    read = getattr(ctypes.CDLL(None), "__sanitizer_get_current_allocated_bytes", None)
    if read is None:
        return None
    read.restype = ctypes.c_size_t
    return lambda: int(read())


class _Info(ctypes.Structure):
    """glibc's `struct mallinfo2`."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    )  # fmt: skip


def _heap() -> Meter:
    """Bytes in use of all of glibc's arenas, and of the blocks that it maps."""
    read = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if read is None:
        raise RuntimeError("the heap can't be measured: this needs glibc 2.33 or later")
    read.restype = _Info

    def used() -> int:
        info = read()
        return int(info.uordblks + info.hblkhd)

    return used


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


def _device() -> int:
    import torch

    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return int(total - free)
