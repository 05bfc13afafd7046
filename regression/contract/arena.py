"""Allocations with guards on both sides, for inputs that nobody may write and outputs that end somewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

GUARD_BYTES = 64  # keeps the alignment of the allocation
GUARD = 0x7E


@dataclass(frozen=True, kw_only=True)
class Arena:
    """Allocates for one case."""

    device: str
    _buffers: list[Tensor] = field(default_factory=list)

    def allocate(self, count: int) -> Tensor:
        """uint8 [count], uninitialised, on a 16-byte boundary."""
        buffer = torch.empty(count + 2 * GUARD_BYTES, dtype=torch.uint8, device=self.device)
        buffer[:GUARD_BYTES] = buffer[GUARD_BYTES + count :] = GUARD
        self._buffers.append(buffer)
        return buffer[GUARD_BYTES : GUARD_BYTES + count]

    def strayed(self) -> int:
        """Bytes beside the allocations that were written."""
        edges = [part for b in self._buffers for part in (b[:GUARD_BYTES], b[-GUARD_BYTES:])]
        return int((torch.cat(edges) != GUARD).sum()) if edges else 0
