"""One loaded library and its operations; C++ checks their arguments before it writes or launches anything."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor as is_wrapped

from grouped_attention.workspace import Pool, Workspace, indexed, key_of, refuse_capture, stream_handle

ATTENTION = "grouped_e4m3_fp32"
_DEVICE_TYPES = {"host": "cpu", "cuda": "cuda"}
_TENSORS = ("q", "k_cache", "v_cache", "block_table", "row_lens")


@dataclass(frozen=True, kw_only=True, eq=False)
class Extension:
    """A loaded library: one backend ("host" or "cuda"), one architecture ("sm_70", "sm_80", "sm_90").

    `code_digest` is None for a library without a manifest beside it. Several may be loaded at once.
    """

    library: Path
    backend: str
    arch: str
    precision_version: int
    splits: int
    instances: tuple[tuple[int, int], ...]  # (heads, head_dim)
    sha256: str
    code_digest: str | None
    functions: Mapping[str, Any] = field(repr=False)
    pool: Pool = field(repr=False)

    def grouped_e4m3_fp32(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        block_table: torch.Tensor,
        row_lens: torch.Tensor,
        *,
        softmax_scale: float,
        k_scale: float = 1.0,
        v_scale: float = 1.0,
        out: torch.Tensor | None = None,
        workspace: Workspace | None = None,
    ) -> torch.Tensor:
        """Attention of one request's query rows over its paged E4M3 cache: fp16 [R, H, D], `out` if given.

        q fp16 [R, H, D], R = 2…8; caches uint8 or float8_e4m3fn [P, page, 1, D]; block_table int32 [1, N];
        row_lens int32 [R], each row's causal prefix in tokens: ≤ 0 gives zeros, above N·page gives NaN.
        TypeError for dtypes; ValueError for shapes, strides, alignment, devices, scales or an `out` that
        overlaps an input; RuntimeError for what would have to be allocated during a graph capture.
        """
        inputs = _inputs(q, k_cache, v_cache, block_table, row_lens)
        out = _output(q) if out is None else _tensor("out", out)
        space = self._default_workspace(q) if workspace is None else _workspace(workspace)
        scales = (float(softmax_scale), float(k_scale), float(v_scale))
        self._call(ATTENTION, *inputs, out, space.acc, space.max_sum, *scales, stream_handle(q.device))
        return out

    def grouped_e4m3_fp32_partials(
        self,
        q: torch.Tensor,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
        block_table: torch.Tensor,
        row_lens: torch.Tensor,
        *,
        softmax_scale: float,
        k_scale: float = 1.0,
        v_scale: float = 1.0,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The state before the combine, for debugging: fp32 numerators [S, R, H, D], (max, sum) [S, R, H, 2].

        Takes what `grouped_e4m3_fp32` takes. Splits without a live token for a row hold max -inf, sum 0,
        numerator 0; rows over the capacity hold NaN.
        """
        inputs = _inputs(q, k_cache, v_cache, block_table, row_lens)
        acc, max_sum = self._partials(q)
        scales = (float(softmax_scale), float(k_scale), float(v_scale))
        self._call(f"{ATTENTION}_partials", *inputs, acc, max_sum, *scales, stream_handle(q.device))
        return acc, max_sum

    def workspace(
        self,
        kind: str,
        *,
        heads: int,
        head_dim: int,
        device: torch.device | str,
        stream: torch.cuda.Stream | int | None = None,
    ) -> Workspace:
        """The workspace of (device, stream, kind), the same one each time; None is the current stream.

        ValueError for a kind, an instance or a device that this library doesn't have.
        """
        if (heads, head_dim) not in self.instances:
            raise ValueError(f"no instance ({heads}, {head_dim}); this library has {list(self.instances)}")
        device = indexed(device)
        self._check_device(device)
        handle = stream_handle(device, stream)
        return self.pool.get(key_of(kind, heads=heads, head_dim=head_dim, device=device, stream=handle))

    def _check_device(self, device: torch.device) -> None:
        expected = _DEVICE_TYPES[self.backend]
        if device.type != expected:
            raise ValueError(
                f"this library runs on {expected}, not on {device}: move the tensors or load another backend"
            )

    def _default_workspace(self, q: torch.Tensor) -> Workspace:
        self._check_device(q.device)
        heads, head_dim = _instance(q, self.instances)
        # Two threads may interleave their launches on one stream, so a stream alone doesn't separate them.
        key = key_of(
            ATTENTION,
            heads=heads,
            head_dim=head_dim,
            device=q.device,
            stream=stream_handle(q.device),
            owner=threading.get_ident(),
        )
        return self.pool.get(key)

    def _partials(self, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        heads, head_dim = _instance(q, self.instances)
        refuse_capture(q.device, "partials", "call this debug operation outside the capture")
        shape = (self.splits, q.shape[0], heads)
        acc = torch.empty((*shape, head_dim), dtype=torch.float32, device=q.device)
        return acc, torch.empty((*shape, 2), dtype=torch.float32, device=q.device)

    def _call(self, name: str, *arguments: object) -> None:
        if self.backend == "host" and "set_num_threads" in self.functions:
            self.functions["set_num_threads"](torch.get_num_threads())
        self.functions[name](*arguments)


def _inputs(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
    q, k_cache, v_cache, block_table, row_lens = map(_tensor, _TENSORS, tensors)
    return q, _codes(k_cache), _codes(v_cache), block_table, row_lens


def _tensor(name: str, value: object) -> torch.Tensor:
    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    if value.device.type not in ("cpu", "cuda"):
        raise ValueError(f"{name} is on {value.device}: move it to cpu or cuda")
    if not _is_plain(value):
        raise ValueError(
            f"{name} is lazy, sparse, fake or wrapped: its memory doesn't hold its values; pass a dense copy"
        )
    return value


def _is_plain(value: torch.Tensor) -> bool:
    """False for what is computed only when read, which DLPack would pass on as the memory beneath it."""
    lazy = value.is_neg() or value.is_conj() or value._is_zerotensor()
    wrapped = type(value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__ or is_wrapped(value)
    return value.layout == torch.strided and not lazy and not wrapped


def _codes(cache: torch.Tensor) -> torch.Tensor:
    return cache.view(torch.uint8) if cache.dtype == torch.float8_e4m3fn else cache


def _workspace(value: object) -> Workspace:
    if isinstance(value, Workspace):
        return value
    raise TypeError(f"workspace must come from ext.workspace(...), got {type(value).__name__}")


def _output(q: torch.Tensor) -> torch.Tensor:
    refuse_capture(q.device, "the output", "allocate it before the capture and pass it as out=")
    return torch.empty(q.shape, dtype=torch.float16, device=q.device)


def _instance(q: torch.Tensor, instances: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    if q.dim() == 3 and (q.shape[1], q.shape[2]) in instances:
        return q.shape[1], q.shape[2]
    raise ValueError(
        f"q must have shape [rows, heads, head_dim] with (heads, head_dim) in {list(instances)}, "
        f"got {list(q.shape)}"
    )
