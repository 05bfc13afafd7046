"""docs/arithmetic.md in numpy, written from that page alone: the operation's bits by another road.

Only the tensor-core product is the library's own; it is tested against silicon elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from kernel_cases import Call

import grouped_attention as ga

F32 = npt.NDArray[np.float32]
SPLITS = {"sm_70": 80, "sm_80": 108, "sm_90": 132}
COEFFICIENTS = (0x3AB511E8, 0x3C091D10, 0x3D2AAC79, 0x3E2AAA49, 0x3EFFFFFE)
LN2_HIGH, LN2_LOW, LOG2_E = 0x3F318000, 0x395E8083, 0x3FB8AA3B
TILE, STEP = 32, 16


def constant(bits: int) -> np.float32:
    return np.uint32(bits).view(np.float32)


def fma(a: F32, b: F32 | np.float32, c: F32 | np.float32) -> F32:
    """RN(a * b + c): the fp64 product is exact, and its sum rounded to odd, so rounding twice is harmless."""
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.broadcast_to(np.asarray(c, np.float64), product.shape)
    total = product + addend
    rest = total - product
    error = (product - (total - rest)) + (addend - rest)
    even = (total.view(np.int64) & 1) == 0
    nudge = np.isfinite(total) & (error != 0) & even
    total = np.where(nudge, np.nextafter(total, np.copysign(np.inf, error)), total)
    return total.astype(np.float32)


def exponential(x: F32) -> F32:
    """E(x): exp32 with its argument clamped at -80."""
    x = np.where(x < -80, np.float32(-80), x).astype(np.float32)
    n = np.rint(x * constant(LOG2_E))
    r = fma(n, -constant(LN2_HIGH), x)
    r = fma(n, constant(LN2_LOW), r)
    y = np.full_like(r, constant(COEFFICIENTS[0]))
    for bits in COEFFICIENTS[1:]:
        y = fma(y, r, constant(bits))
    y = fma(fma(y, r, np.float32(1)), r, np.float32(1))
    power = np.nan_to_num(n).astype(np.int32) << 23
    return np.where(np.isnan(x), np.float32(np.nan), (y.view(np.int32) + power).view(np.float32))


def values_of(codes: torch.Tensor) -> npt.NDArray[np.float16]:
    return codes.view(torch.float8_e4m3fn).to(torch.float16).numpy()


def dot(a: npt.NDArray[np.float16], b: npt.NDArray[np.float16], c: F32, arch: str) -> F32:
    """The tensor-core product over the last axis of broadcast operands."""
    shape = np.broadcast_shapes(a.shape, b.shape)
    a, b = (np.broadcast_to(x, shape).reshape(-1, STEP) for x in (a, b))
    return ga.tensor_core.dot(a, b, np.broadcast_to(c, shape[:-1]).ravel(), arch).reshape(shape[:-1])


@dataclass(frozen=True, kw_only=True)
class Reference:
    """One call on one architecture; `run` gives what the partials operation gives."""

    call: Call
    arch: str

    @property
    def capacity(self) -> int:
        return self.call.table.shape[1] * self.call.k.shape[1]

    @property
    def live_lens(self) -> npt.NDArray[np.int64]:
        lens = self.call.lens.numpy().astype(np.int64)
        return np.where((lens > 0) & (lens <= self.capacity), lens, 0)

    def gather(self, cache: torch.Tensor) -> torch.Tensor:
        """Codes of all tokens below the longest length, zeros up to a whole tile: [T, D]."""
        longest, page = int(self.live_lens.max()), cache.shape[1]
        token = np.arange(longest)
        block = self.call.table[0].numpy()[token // page].astype(np.int64)
        rows = cache[torch.from_numpy(block), torch.from_numpy(token % page), 0]
        return torch.nn.functional.pad(rows, (0, 0, 0, -longest % TILE))

    def scores(self) -> F32:
        """[R, H, T]."""
        q, k = self.call.q.numpy(), values_of(self.gather(self.call.k))
        total = correction = None
        for d in range(0, q.shape[2], STEP):
            product = dot(
                q[:, :, None, d : d + STEP], k[None, None, :, d : d + STEP], np.float32(0), self.arch
            )
            if total is None:
                total, correction = product, np.zeros_like(product)
                continue
            y = product - correction
            new = total + y
            correction, total = (new - total) - y, new
        scale = np.float32(self.call.softmax_scale) * np.float32(self.call.k_scale)
        return total * scale + np.float32(0)

    def split_ranges(self) -> Iterator[tuple[int, range]]:
        longest = int(self.live_lens.max())
        tiles, splits = -(-longest // TILE), SPLITS[self.arch]
        active = 1 if longest <= 128 else min(splits, -(-longest // 64))
        begin = 0
        for split in range(active):
            count = tiles // active + (split < tiles % active)
            yield split, range(begin, begin + count)
            begin += count

    def run(self) -> tuple[F32, F32]:
        rows, heads, dim = self.call.q.shape
        acc = np.zeros((SPLITS[self.arch], rows, heads, dim), np.float32)
        state = np.zeros((SPLITS[self.arch], rows, heads, 2), np.float32)
        state[..., 0] = -np.inf
        over = self.call.lens.numpy() > self.capacity
        acc[:, over], state[:, over] = np.nan, np.nan
        if self.live_lens.max() > 0:
            scores, codes = self.scores(), self.gather(self.call.v)
            for split, tiles in self.split_ranges():
                for row in np.flatnonzero(self.live_lens):
                    acc[split, row], state[split, row] = self.one_row(row, tiles, scores[row], codes)
        return acc, state

    def one_row(self, row: int, tiles: range, scores: F32, codes: torch.Tensor) -> tuple[F32, F32]:
        """All heads of one row over one split: numerators [H, D], (max, sum) [H, 2]."""
        heads, dim = self.call.q.shape[1:]
        top, total = np.full(heads, -np.inf, np.float32), np.zeros(heads, np.float32)
        numerator = np.zeros((heads, dim), np.float32)
        for tile in tiles:
            live = min(int(self.live_lens[row]) - tile * TILE, TILE)
            if live <= 0:
                break
            first = tile == tiles.start
            span = slice(tile * TILE, (tile + 1) * TILE)
            new = scores[:, span][:, :live].max(axis=1)
            new = new if first else np.maximum(top, new)
            p = np.zeros((heads, TILE), np.float32)
            p[:, :live] = exponential(scores[:, span][:, :live] - new[:, None])
            rescale, tile_sum, product = exponential(top - new), tree(p), self.values(p, codes[span])
            total = tile_sum if first else fma(total, rescale, tile_sum)
            numerator = product if first else fma(numerator, rescale[:, None], product)
            bad = ((codes[span][:live] & 0x7F) == 0x7F).any(dim=0).numpy()
            numerator[:, bad] = np.nan
            top = new
        return numerator * np.float32(self.call.v_scale), np.stack([top, total], axis=-1)

    def values(self, p: F32, codes: torch.Tensor) -> F32:
        high = p.astype(np.float16)
        low = ((p - high.astype(np.float32)) * np.float32(2048)).astype(np.float16)
        v = np.nan_to_num(values_of(codes).astype(np.float32)).astype(np.float16).T
        v_low = (v.astype(np.float32) / 2048).astype(np.float16)
        product = np.float32(0)
        for i in range(0, TILE, STEP):
            for left, right in ((high, v), (low, v_low)):
                product = dot(left[:, None, i : i + STEP], right[None, :, i : i + STEP], product, self.arch)
        return product


def tree(p: F32) -> F32:
    while p.shape[1] > 1:
        p = p[:, 0::2] + p[:, 1::2]
    return p[:, 0]


def combine(acc: F32, state: F32, lens: npt.NDArray[np.int64], capacity: int) -> npt.NDArray[np.float16]:
    """fp16 [R, H, D] of the partials [S, R, H, D] and [S, R, H, 2]."""
    out = np.zeros(acc.shape[1:], np.float16)
    for row, length in enumerate(lens):
        if length > capacity:
            out[row] = np.nan
        for head in range(acc.shape[2] if 0 < length <= capacity else 0):
            used = [s for s in range(len(acc)) if state[s, row, head, 1] != 0]
            top = np.max([state[s, row, head, 0] for s in used])
            numerator, total = np.zeros(acc.shape[3], np.float32), np.zeros(1, np.float32)
            for s in used:
                weight = exponential(np.array([state[s, row, head, 0] - top], np.float32))
                numerator = fma(acc[s, row, head], weight, numerator)
                total = fma(np.array([state[s, row, head, 1]], np.float32), weight, total)
            out[row, head] = (numerator / total).astype(np.float16) + np.float16(0)
    return out
