"""Calls of the attention operation, drawn from a seed, and what a run of one leaves behind."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import Any

import torch

NAN_CODES = (0x7F, 0xFF)
INSTANCES = ((6, 256), (3, 64))


@dataclass(frozen=True, kw_only=True)
class Call:
    """The arguments of one call; caches uint8 [P, page, 1, D]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    table: torch.Tensor
    lens: torch.Tensor
    softmax_scale: float = 0.0625
    k_scale: float = 1.0
    v_scale: float = 1.0

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return (self.q, self.k, self.v, self.table, self.lens)

    @property
    def scales(self) -> dict[str, float]:
        return {"softmax_scale": self.softmax_scale, "k_scale": self.k_scale, "v_scale": self.v_scale}

    def but(self, **changes: Any) -> Call:
        return replace(self, **changes)


def lengths(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.int32)


def codes(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> torch.Tensor:
    """Finite E4M3 codes of a normal distribution."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale
    return x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)


def plain(
    *, heads: int = 3, dim: int = 64, rows: int = 5, page: int = 48, tokens: int = 300, seed: int = 0
) -> Call:
    """A causal call: row r sees `tokens - rows + 1 + r` tokens; three spare pages, a shuffled table."""
    generator = torch.Generator().manual_seed(seed)
    entries = -(-tokens // page)
    return Call(
        q=torch.randn(rows, heads, dim, generator=generator).half(),
        k=codes((entries + 3, page, 1, dim), seed + 1),
        v=codes((entries + 3, page, 1, dim), seed + 2),
        table=torch.randperm(entries + 3, generator=generator)[:entries].int()[None],
        lens=lengths(*(tokens - rows + 1 + row for row in range(rows))),
        softmax_scale=dim**-0.5,
    )


def hostile(seed: int) -> Call:
    """Anything valid: odd magnitudes, zeros, subnormals, NaN, infinities, padded strides, ragged lengths."""
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    heads, dim = rng.choice(INSTANCES)
    rows, page = rng.randint(2, 8), rng.choice((16, 32, 48, 64, 800, 848, 1616, 3456))
    longest = rng.randint(1, 200) if rng.random() < 0.8 else rng.randint(200, 700)
    entries = -(-longest // page) + rng.randint(0, 1)
    capacity = entries * page
    ragged = lambda: rng.choice((longest, rng.randint(0, longest), -3, capacity + 1))  # noqa: E731
    return Call(
        q=_hostile_q(rng, generator, (rows, heads, dim)),
        k=_hostile_codes(rng, generator, (entries + 2, page, 1, dim)),
        v=_hostile_codes(rng, generator, (entries + 2, page, 1, dim)),
        table=torch.randperm(entries + 2, generator=generator)[:entries].int()[None],
        lens=lengths(longest, *(ragged() for _ in range(rows - 1))),
        softmax_scale=rng.choice((0.0625, 1.0, 2.0 ** rng.randint(-10, 10), 1e30)),
        k_scale=rng.choice((1.0, 0.37)),
        v_scale=rng.choice((1.0, 0.013, 5.0)),
    )


def _hostile_q(rng: random.Random, generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    q = torch.randn(shape, generator=generator) * 2.0 ** rng.randint(-20, 8)
    if rng.random() < 0.3:
        q *= torch.exp2(torch.randint(-14, 6, shape, generator=generator).float())
    if rng.random() < 0.3:
        q *= torch.rand(shape, generator=generator) < 0.2
    q = q.clamp(-65504, 65504).half()
    if rng.random() < 0.2:
        row, head = rng.randrange(shape[0]), rng.randrange(shape[1])
        q[row, head, rng.choice((rng.randrange(shape[2]), shape[2] - 1))] = rng.choice((torch.inf, torch.nan))
    return q


def _hostile_codes(rng: random.Random, generator: torch.Generator, shape: tuple[int, ...]) -> torch.Tensor:
    padded = (*shape[:-1], shape[-1] + rng.choice((0, 8, 16)))
    if rng.random() < 0.3:
        result = torch.randint(0, 256, padded, generator=generator, dtype=torch.uint8)
        if rng.random() < 0.7:
            result = torch.where((result & 0x7F) == 0x7F, result - 1, result)
    else:
        x = torch.randn(padded, generator=generator) * 2.0 ** rng.randint(-9, 7)
        if rng.random() < 0.4:
            x *= torch.rand(padded, generator=generator) < 0.3
        result = x.clamp(-448, 448).to(torch.float8_e4m3fn).view(torch.uint8)
        if rng.random() < 0.3:
            place = (rng.randrange(shape[0]), rng.randrange(shape[1]), 0, rng.randrange(shape[3]))
            result[place] = rng.choice(NAN_CODES)
    return result[..., : shape[-1]]


def attend(ext: Any, call: Call, **options: Any) -> torch.Tensor:
    """The output's bits, int16 [R, H, D]."""
    return ext.grouped_e4m3_fp32(*call.tensors, **call.scales, **options).view(torch.int16)


def partials(ext: Any, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
    """The bits of numerators and of maxima and sums, int32."""
    acc, max_sum = ext.grouped_e4m3_fp32_partials(*call.tensors, **call.scales)
    return acc.view(torch.int32), max_sum.view(torch.int32)


def same_bits(a: Any, b: Any, call: Call) -> bool:
    """Whether two libraries agree on outputs and partials."""
    pairs = zip((attend(a, call), *partials(a, call)), (attend(b, call), *partials(b, call)), strict=True)
    return all(torch.equal(x, y) for x, y in pairs)
