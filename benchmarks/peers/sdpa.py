"""torch's scaled_dot_product_attention. It knows neither pages nor E4M3: both are undone before it.

All rows must be live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.peers.prepared import Prepared


@dataclass(frozen=True, kw_only=True)
class Dense:
    """Keys and values fp16 [1, 1, T, D] in the order of tokens, unscaled; which tokens count for a row."""

    k: torch.Tensor
    v: torch.Tensor
    live: torch.Tensor  # bool [1, 1, R, T]


def whole(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    row_lens: torch.Tensor,
    *,
    softmax_scale: float,
    k_scale: float,
    v_scale: float,
    out: torch.Tensor,
) -> torch.Tensor:
    """The operation, everything made anew in each call; fp16 [R, H, D] into `out`."""
    made = dense(block_table, k_cache, v_cache, row_lens)
    return _attend(q, made, softmax_scale * k_scale, v_scale, out)


def make_ready() -> Callable[..., Any]:
    """The operation with keys and values made at a problem's first call, and not in its later ones."""
    prepared = Prepared(dense)

    def ready(
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        block_table: torch.Tensor,
        row_lens: torch.Tensor,
        *,
        softmax_scale: float,
        k_scale: float,
        v_scale: float,
        out: torch.Tensor,
    ) -> torch.Tensor:
        made = prepared.of(block_table, k_cache, v_cache, row_lens)
        return _attend(q, made, softmax_scale * k_scale, v_scale, out)

    return ready


def dense(
    block_table: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, row_lens: torch.Tensor
) -> Dense:
    """A call's cache without pages, whole pages long; nothing here waits for the device."""
    k, v = (_contiguous(cache, block_table) for cache in (k_cache, v_cache))
    tokens = torch.arange(k.shape[2], device=row_lens.device)
    return Dense(k=k, v=v, live=(tokens[None, :] < row_lens[:, None])[None, None])


def _contiguous(cache: torch.Tensor, block_table: torch.Tensor) -> torch.Tensor:
    pages = cache.view(torch.uint8).index_select(0, block_table[0])
    return pages.view(torch.float8_e4m3fn).reshape(1, 1, -1, cache.shape[-1]).half()


def _attend(q: torch.Tensor, made: Dense, scale: float, v_scale: float, out: torch.Tensor) -> torch.Tensor:
    """Heads share keys and values by a stride of 0. The values' scale comes last, as in the operation."""
    heads = q.shape[1]
    k, v = (x.expand(1, heads, -1, -1) for x in (made.k, made.v))
    found = scaled_dot_product_attention(q.transpose(0, 1)[None], k, v, attn_mask=made.live, scale=scale)
    out.copy_(found[0].transpose(0, 1))
    if v_scale != 1.0:
        out.mul_(v_scale)
    return out
