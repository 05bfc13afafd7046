"""Allocations of exactly the size asked for, so that one byte too far is seen."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import torch
from torch import Tensor

# Larger ones are mapped, between pages that can't be read: a redzone map of gigabytes takes seconds.
MAPPED_BYTES = 1 << 28
NORESERVE = 0x4000
ALIGNMENT = 16


@dataclass(frozen=True)
class Arena:
    """Allocates tensors for one case and frees them at its end."""

    device: str
    _undo: list[Callable[[], object]] = field(default_factory=list)

    def __enter__(self) -> Arena:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._undo:
            self._undo.pop()()

    def allocate(self, count: int) -> Tensor:
        """uint8 [count], uninitialised; on a CPU it dies with the arena."""
        if self.device != "cpu":
            return torch.empty(count, dtype=torch.uint8, device=self.device)
        address = self._map(count) if count >= MAPPED_BYTES else self._malloc(count)
        block = (ctypes.c_uint8 * count).from_address(address)
        return torch.frombuffer(block, dtype=torch.uint8)

    def _malloc(self, count: int) -> int:
        libc = _libc()
        address = libc.malloc(ctypes.c_size_t(count))
        if not address:
            raise MemoryError(f"malloc of {count} bytes failed")
        self._undo.append(lambda: libc.free(ctypes.c_void_p(address)))
        return int(address)

    def _map(self, count: int) -> int:
        """The end of the tensor, up to its alignment, is the end of what can be read."""
        libc, page = _libc(), mmap.PAGESIZE
        room = -(-count // page) * page
        base = libc.mmap(
            None,
            ctypes.c_size_t(room + 2 * page),
            mmap.PROT_READ | mmap.PROT_WRITE,
            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE,
            -1,
            ctypes.c_long(0),
        )
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mapping {count} bytes failed")
        for edge in (base, base + page + room):
            libc.mprotect(ctypes.c_void_p(edge), ctypes.c_size_t(page), 0)
        self._undo.append(lambda: libc.munmap(ctypes.c_void_p(base), ctypes.c_size_t(room + 2 * page)))
        return int(base + page + (room - count) // ALIGNMENT * ALIGNMENT)


def _libc() -> ctypes.CDLL:
    """The process's own C library: under a preloaded sanitizer, the sanitizer's malloc."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype = libc.mmap.restype = ctypes.c_void_p
    return libc
