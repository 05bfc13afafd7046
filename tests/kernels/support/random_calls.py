"""Random calls of the attention operation that meet every branch of the kernels, drawn from a seed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

NAN_CODES = (0x7F, 0xFF)
PAGES = (16, 32, 48, 80, 112, 176, 240, 800, 848, 1616, 3296)
LAYOUTS = ("contiguous", "interleaved", "token-padded", "block-padded", "odd-base")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Arguments of one call, and how they were drawn."""

    q: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    block_table: torch.Tensor
    row_lens: torch.Tensor
    softmax_scale: float
    k_scale: float
    v_scale: float
    label: str

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return (self.q, self.k_cache, self.v_cache, self.block_table, self.row_lens)

    @property
    def scales(self) -> dict[str, float]:
        return {"softmax_scale": self.softmax_scale, "k_scale": self.k_scale, "v_scale": self.v_scale}

    def to(self, device: str) -> Problem:
        """A copy there, with the same strides and the same distance from a 16-byte boundary."""
        return replace(self, **{
            name: _moved(getattr(self, name), device)
            for name in ("q", "k_cache", "v_cache", "block_table", "row_lens")
        })  # fmt: skip


def draw(seed: int, *, heads: int, dim: int, longest: int = 400, pages: tuple[int, ...] = PAGES) -> Problem:
    """The problem of a seed; no row is longer than about `longest` tokens, unless it is over the capacity."""
    rng = np.random.default_rng([seed, heads, dim])
    rows, page = int(rng.integers(2, 9)), int(rng.choice(pages))
    lens = _lengths(rng, rows, longest)
    live = max([length for length in lens if length > 0], default=0)
    entries = max(1, -(-live // page)) + int(rng.integers(0, 3))
    lens = _with_over_capacity(rng, lens, entries * page)
    live = max([length for length in lens if 0 < length <= entries * page], default=0)
    layout, blocks = str(rng.choice(LAYOUTS)), entries + int(rng.integers(0, 4))
    k, v = _caches(rng, blocks, page, dim, layout)
    table = _table(rng, entries, blocks, -(-live // page))
    nans = _scatter_nans(rng, k, v, table, page, live)
    q, special = _query(rng, rows, heads, dim)
    return Problem(
        q=q, k_cache=k, v_cache=v,
        block_table=torch.from_numpy(table[None]), row_lens=torch.tensor(lens, dtype=torch.int32),
        softmax_scale=float(rng.choice([dim**-0.5, 0.3, 1e-3])),
        k_scale=float(rng.choice([1.0, 0.37])), v_scale=float(rng.choice([1.0, 0.11])),
        label=f"seed {seed} R{rows} {heads}x{dim} page {page} {layout} lens {lens} nans {nans} {special}",
    )  # fmt: skip


def _lengths(rng: np.random.Generator, rows: int, longest: int) -> list[int]:
    top = int(rng.integers(1, longest + 1))
    kind = rng.integers(0, 4)
    if kind == 0:
        return [max(top - rows + 1 + row, 0) for row in range(rows)]
    if kind == 1:
        return [top] * rows
    lens = [int(rng.integers(-2, top + 1)) for _ in range(rows)]
    if kind == 2:
        lens[int(rng.integers(0, rows))] = top
    return lens


def _with_over_capacity(rng: np.random.Generator, lens: list[int], capacity: int) -> list[int]:
    if rng.random() < 0.2:
        lens[int(rng.integers(0, len(lens)))] = capacity + int(rng.choice([1, 7, 2**30]))
    return lens


def _caches(
    rng: np.random.Generator, blocks: int, page: int, dim: int, layout: str
) -> tuple[torch.Tensor, torch.Tensor]:
    token = dim + (8 if layout == "token-padded" else 16 if layout == "odd-base" else 0)
    block = page * token + (8 if layout == "block-padded" else 0)
    parts = 2 if layout == "interleaved" else 1
    caches = []
    for base in (0, block) if parts == 2 else (0, 0):
        if not caches or parts == 1:
            memory = _aligned_bytes(blocks * parts * block + 16, shift=16 if layout == "odd-base" else 0)
            memory.copy_(torch.from_numpy(_codes(rng, memory.numel())))
        shape, strides = (blocks, page, 1, dim), (parts * block, token, dim, 1)
        caches.append(torch.as_strided(memory, shape, strides, memory.storage_offset() + base))
    return caches[0], caches[1]


def _codes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Finite codes, large ones rarer."""
    codes = rng.integers(0, 127, count, dtype=np.uint8)
    codes = np.where(rng.random(count) < 0.8, codes % 64, codes).astype(np.uint8)
    return codes | (rng.integers(0, 2, count, dtype=np.uint8) << 7)


def _aligned_bytes(count: int, *, shift: int = 0) -> torch.Tensor:
    memory = torch.empty(count + 32, dtype=torch.uint8)
    first = -memory.data_ptr() % 16 + shift
    return memory[first : first + count]


def _table(rng: np.random.Generator, entries: int, blocks: int, used: int) -> np.ndarray:
    table = rng.permutation(blocks)[:entries].astype(np.int32)
    table[used:] = rng.choice([-1, 2**31 - 1, -(2**31)], entries - used)
    return table


def _scatter_nans(
    rng: np.random.Generator, k: torch.Tensor, v: torch.Tensor, table: np.ndarray, page: int, live: int
) -> int:
    """NaN codes everywhere that is dead, and at few live places."""
    dead = np.ones((k.shape[0], page), dtype=bool)
    for entry in range(-(-live // page)):
        dead[table[entry], : max(0, min(page, live - entry * page))] = False
    for cache in (k, v):
        cache[torch.from_numpy(dead)] = NAN_CODES[1]
    if live == 0 or rng.random() < 0.6:
        return 0
    count = int(rng.integers(1, 4))
    for _ in range(count):
        cache = k if rng.random() < 0.15 else v
        token, dim = int(rng.integers(0, live)), int(rng.integers(0, k.shape[3]))
        cache[int(table[token // page]), token % page, 0, dim] = int(rng.choice(NAN_CODES))
    return count


def _query(rng: np.random.Generator, rows: int, heads: int, dim: int) -> tuple[torch.Tensor, str]:
    values = rng.standard_normal((rows, heads, dim)) * rng.choice([0.05, 1.0, 3.0])
    special = ""
    if rng.random() < 0.15:
        special = str(rng.choice(["inf", "-inf", "nan", "zero row"]))
        at = (int(rng.integers(0, rows)), int(rng.integers(0, heads)))
        if special == "zero row":
            values[at] = 0.0
        else:
            values[(*at, int(rng.integers(0, dim)))] = float(special)
    return _offset(torch.from_numpy(values.astype(np.float16)), int(rng.choice([0, 0, 1, 4, 7]))), special


def _offset(tensor: torch.Tensor, halves: int) -> torch.Tensor:
    memory = _aligned_bytes(tensor.numel() * 2 + 16).view(torch.float16)
    place = memory[halves : halves + tensor.numel()].view(tensor.shape)
    return place.copy_(tensor)


def _moved(tensor: torch.Tensor, device: str) -> torch.Tensor:
    span = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)) + 1
    item = tensor.element_size()
    shift = tensor.data_ptr() % 16 // item
    # Allocations on a GPU are aligned; the margin keeps the span inside one allocation.
    memory = torch.empty(span + shift, dtype=tensor.dtype, device=device)
    flat = torch.as_strided(tensor, (span,), (1,), tensor.storage_offset())
    memory[shift:].copy_(flat)
    return torch.as_strided(memory, tensor.shape, tensor.stride(), shift)
