"""Memory that calls keep: what is in use before and after a thousand of them, in this process.

A pool that grows to its size is no leak, and may take thousands of calls for it (Python's own objects on
AddressSanitizer's heap do): growth counts that ten rounds in a row repeat, or that adds up to much and still
goes on in the later half of them.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CALLS, WARM_UP_CALLS, FEWEST_ROUNDS, ROUNDS = 1000, 100, 2, 10
# The least growth in bytes of a round that counts: 16 a call of heap, a page a call of other memory; a GPU's
# driver hands out 2 MiB at a time.
LIMITS_BYTES = {"heap": 16 * CALLS, "resident": mmap.PAGESIZE * CALLS, "device": 2 << 20}
# Of all rounds, where not every one grows. A sound kernel was seen to keep 20 kB, under AddressSanitizer.
TOTALS_BYTES = {"heap": 32 << 10, "resident": 16 << 20, "device": 8 << 20}
JUMPS = 2  # rounds of the later half: a pool is full by then
WORD = "kept"

Meter = Callable[[], int]
Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Bytes that each round added, by meter."""

    rounds: Sequence[Mapping[str, int]]

    @property
    def bytes(self) -> dict[str, int]:
        """What every round added at least."""
        return {name: min(counts) for name, counts in self._meters().items()}

    @property
    def text(self) -> str:
        """All meters, for the record."""
        return ", ".join(f"{name} {count:+}" for name, count in self.bytes.items())

    @property
    def complaint(self) -> str | None:
        """The meters that every round lets grow, or that grow again and again."""
        said = [text for name, counts in self._meters().items() if (text := _kept(name, counts))]
        return f"{WORD} {' and '.join(said)}" if said else None

    @property
    def settled(self) -> bool:
        """Whether further rounds could only confirm that nothing is kept."""
        return len(self.rounds) >= FEWEST_ROUNDS and all(
            min(counts) < LIMITS_BYTES[name] and sum(counts) < TOTALS_BYTES[name]
            for name, counts in self._meters().items()
        )

    def _meters(self) -> dict[str, list[int]]:
        return {name: [one[name] for one in self.rounds] for name in self.rounds[0]}


def _kept(name: str, counts: Sequence[int]) -> str:
    """What a meter says against the calls; nothing if it doesn't."""
    least, total, limit = min(counts), sum(counts), LIMITS_BYTES[name]
    if least >= limit:
        return f"{least} bytes of {name} memory, {least / CALLS:.0f} a call, after {CALLS} calls"
    jumps = sum(count >= limit for count in counts[len(counts) // 2 :])
    if total >= TOTALS_BYTES[name] and jumps >= JUMPS:
        return f"{total} bytes of {name} memory by jumps, after {len(counts) * CALLS} calls"
    return ""


def growth(call: Call, meters: Mapping[str, Meter]) -> Growth:
    """Call until it is settled that nothing is kept, at most ten rounds of a thousand."""
    for _ in range(WARM_UP_CALLS):
        call()
    found = Growth(rounds=[_round(call, meters)])
    while not found.settled and len(found.rounds) < ROUNDS:
        found = Growth(rounds=[*found.rounds, _round(call, meters)])
    return found


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
