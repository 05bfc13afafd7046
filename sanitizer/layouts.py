"""The layouts that `leakcheck` calls: one for each path that a call may take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

TOKENS = 70
MISALIGNED = 1  # elements of fp16 off a 16-byte boundary
NARROW = 8  # bytes: what a cache's strides may be multiples of
OVER = 1 << 20  # tokens: beyond any capacity here


@dataclass(frozen=True, kw_only=True)
class Layout:
    """`off`: elements that q and out lie off a 16-byte boundary, where a kernel may copy q first. `wider`:
    bytes between one token of a cache and the next beyond its dimensions. `idle`: the first row has no
    token, and the last is over the capacity.
    """

    rows: int = 3
    tokens: int = TOKENS
    page: int = 64
    off: int = 0
    wider: int = 0
    idle: bool = False

    def made(self, heads: int, dim: int, device: str) -> tuple[tuple[Any, ...], Any]:
        """Query, caches, table and lengths, and an output."""
        from fixtures.cases.case import assemble, causal
        from fixtures.cases.noise import codes, normal

        k, v = (codes(self.tokens, dim, seed=seed) for seed in (2, 3))
        lens = list(causal(self.tokens, self.rows))
        if self.idle:
            lens[0], lens[-1] = 0, OVER
        made = assemble(normal(self.rows, heads, dim, seed=1), k, v, lens, page=self.page).to(device)
        caches = (_widened(cache, self.wider) for cache in (made.k_cache, made.v_cache))
        q, out = (_moved(made.q, self.off) for _ in range(2))
        return (q, *caches, made.block_table, made.row_lens), out


LAYOUTS = {
    "": Layout(),
    "few": Layout(rows=2),
    "many": Layout(rows=8),
    "misaligned": Layout(off=MISALIGNED),
    "narrow": Layout(wider=NARROW),
    "idle": Layout(idle=True),
    "pages": Layout(page=16, tokens=3 * TOKENS),
    "odd": Layout(rows=8, page=16, off=MISALIGNED, wider=NARROW, idle=True),
}


def named(what: str, layout: str) -> str:
    """The kind of call: what is called, and the layout's name."""
    return f"{what}-{layout}" if layout else what


def split(kind: str) -> tuple[str, str]:
    """What is called, and the layout's name."""
    what, _, layout = kind.rpartition("-")
    return (what, layout) if what and layout in LAYOUTS else (kind, "")


def refused(tensors: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The same tensors with one that is of another type, too few rows, or off its boundary."""
    q, k, v, table, lens = tensors
    yield q, k, v, table.long(), lens
    yield q.float(), k, v, table, lens
    yield q[:1], k, v, table, lens[:1]
    yield q, k.flatten()[1:].as_strided(k[:-1].shape, k.stride()), v, table.clamp(max=len(k) - 2), lens


def _moved(tensor: Any, elements: int) -> Any:
    """A contiguous copy so many elements behind a 16-byte boundary."""
    import torch

    room = torch.empty(tensor.numel() + elements, dtype=tensor.dtype, device=tensor.device)
    return room[elements:].view(tensor.shape).copy_(tensor)


def _widened(cache: Any, count: int) -> Any:
    """A copy of [pages, page, 1, dim] with so many bytes behind each token."""
    import torch

    pages, page, one, dim = cache.shape
    room = torch.zeros((pages, page, one, dim + count), dtype=cache.dtype, device=cache.device)
    return room[..., :dim].copy_(cache)
