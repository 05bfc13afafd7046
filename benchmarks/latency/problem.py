"""One call's tensors on a GPU, and as many copies as it takes to find the L2 cold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

L2_MULTIPLE = 5  # rotating buffers total this many times the L2, so that each call meets a cold one
NAN_CODE = 0x7F


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a latency is of: query rows, heads, head dimension, tokens in a page and in the context."""

    rows: int
    heads: int
    head_dim: int
    page: int
    context: int

    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values that one call must read."""
        return 2 * self.context * self.head_dim

    @property
    def pages(self) -> int:
        """Pages that hold the context."""
        return math.ceil(self.context / self.page)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Arguments of one call, in the order of the operation, and its output buffer."""

    q: torch.Tensor
    cache: torch.Tensor  # uint8 [P, 2, page, 1, D]
    block_table: torch.Tensor
    row_lens: torch.Tensor
    out: torch.Tensor

    @property
    def arguments(self) -> tuple[torch.Tensor, ...]:
        """(q, k_cache, v_cache, block_table, row_lens)."""
        return self.q, self.cache[:, 0], self.cache[:, 1], self.block_table, self.row_lens


def copies(shape: Shape, l2_bytes: int) -> int:
    """How many problems to rotate through: at least 2, and 5 times the L2 in keys and values."""
    return max(2, math.ceil(L2_MULTIPLE * l2_bytes / shape.kv_bytes))


def make(shape: Shape, seed: int, device: torch.device) -> Problem:
    """A problem of random finite codes on `device`; pages are permuted as a serving engine's would be."""
    random = torch.Generator(device=device).manual_seed(seed)
    size = (shape.pages, 2, shape.page, 1, shape.head_dim)
    cache = torch.randint(0, NAN_CODE, size, dtype=torch.uint8, device=device, generator=random)
    cache |= torch.randint(0, 2, size, dtype=torch.uint8, device=device, generator=random) << 7
    q = torch.randn((shape.rows, shape.heads, shape.head_dim), device=device, generator=random).half()
    table = torch.randperm(shape.pages, device=device, generator=random).to(torch.int32)[None]
    lens = torch.arange(shape.context - shape.rows + 1, shape.context + 1, dtype=torch.int32, device=device)
    return Problem(q=q, cache=cache, block_table=table, row_lens=lens, out=torch.empty_like(q))
