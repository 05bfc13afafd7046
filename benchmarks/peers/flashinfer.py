"""FlashInfer's batched prefill wrapper, backend FA2, on the paged E4M3 cache as it is."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers.prepared import Prepared

WORKSPACE_BYTES = 128 << 20  # as its documentation recommends
ADVICE = (
    "FlashInfer isn't installed: pip install flashinfer-python; it compiles its kernels with nvcc and ninja"
)


def make() -> Callable[..., Any]:
    """The operation by FlashInfer; ImportError where it isn't installed. Each block table is planned once."""
    try:
        prefill = importlib.import_module("flashinfer").BatchPrefillWithPagedKVCacheWrapper
    except ImportError as error:
        raise ImportError(f"{ADVICE} ({error})") from error
    spaces: dict[torch.device, torch.Tensor] = {}

    def plan(
        block_table: torch.Tensor,
        k_cache: torch.Tensor,
        q: torch.Tensor,
        row_lens: torch.Tensor,
        softmax_scale: float,
    ) -> Any:
        device = q.device
        if device not in spaces:
            spaces[device] = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
        wrapper = prefill(spaces[device], "NHD", backend="fa2")
        wrapper.plan(**arguments(block_table, k_cache, q, row_lens), sm_scale=softmax_scale)
        return wrapper

    prepared = Prepared(plan)

    def attend(
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
    ) -> Any:
        wrapper = prepared.of(block_table, k_cache, q, row_lens, softmax_scale)
        cache = tuple(x.view(torch.float8_e4m3fn) for x in (k_cache, v_cache))
        return wrapper.run(q, cache, k_scale=k_scale, v_scale=v_scale, out=out)

    return attend


def arguments(
    block_table: torch.Tensor, k_cache: torch.Tensor, q: torch.Tensor, row_lens: torch.Tensor
) -> dict[str, Any]:
    """What `plan` is told of a call. ValueError unless the rows are the context's last tokens, in order.

    Its causal mask can say nothing else.
    """
    lengths, page = row_lens.tolist(), k_cache.shape[1]
    longest = lengths[-1]
    if lengths != list(range(longest - len(lengths) + 1, longest + 1)):
        raise ValueError(f"FlashInfer's causal mask has no rows of {lengths} tokens")
    pages = -(-longest // page)
    starts: dict[str, Any] = {"dtype": torch.int32, "device": q.device}
    return {
        "qo_indptr": torch.tensor([0, len(lengths)], **starts),
        "paged_kv_indptr": torch.tensor([0, pages], **starts),
        "paged_kv_indices": block_table[0, :pages].contiguous(),
        "paged_kv_last_page_len": torch.tensor([longest - (pages - 1) * page], **starts),
        "num_qo_heads": q.shape[1],
        "num_kv_heads": 1,
        "head_dim_qk": q.shape[2],
        "page_size": page,
        "causal": True,
        "q_data_type": torch.float16,
        "kv_data_type": torch.float8_e4m3fn,
    }
