"""Scratch memory of the operations: one workspace per (device, stream, kind), never aliasing.

A workspace's contents are private and need no initialisation: any bytes are valid before a call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch

KINDS = ("grouped_e4m3_fp32",)
WORKSPACE_ROWS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Workspace:
    """One operation's buffers, fp32: `acc` [splits, 8, heads, head_dim], `max_sum` [splits, 8, heads, 2].

    Calls that share a workspace must not run at the same time, be it from two threads or on two streams.
    """

    kind: str
    device: torch.device
    stream: int
    acc: torch.Tensor
    max_sum: torch.Tensor

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        """All buffers that the workspace owns."""
        return (self.acc, self.max_sum)


@dataclass(frozen=True, kw_only=True)
class Key:
    """What a workspace is looked up by. `owner` tells the default workspaces of threads apart."""

    kind: str
    heads: int
    head_dim: int
    device: torch.device
    stream: int
    owner: Hashable = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Pool:
    """All workspaces of one library; they live as long as it does, as captured graphs may point to them."""

    splits: int
    prepare: Callable[[int], object] | None = None  # loads the code onto a device, which a capture can't do
    _held: dict[Key, Workspace] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key) -> Workspace:
        """The workspace of `key`, allocated at first use; RuntimeError if a graph is being captured then."""
        with self._lock:
            if key not in self._held:
                refuse_capture(
                    key.device,
                    "a workspace",
                    "call ext.workspace(...) before the capture and pass it as workspace=",
                )
                if self.prepare is not None and key.device.type == "cuda":
                    self.prepare(key.device.index)
                self._held[key] = _allocate(key, self.splits)
            return self._held[key]


def key_of(
    kind: str, *, heads: int, head_dim: int, device: torch.device, stream: int, owner: Hashable = None
) -> Key:
    """A key; ValueError for an unknown kind."""
    if kind not in KINDS:
        raise ValueError(f"no workspace of kind {kind!r}; there is {', '.join(KINDS)}")
    return Key(kind=kind, heads=heads, head_dim=head_dim, device=indexed(device), stream=stream, owner=owner)


def indexed(device: torch.device | str) -> torch.device:
    """The device with its index: "cuda" means the current one."""
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        return torch.device("cuda", torch.cuda.current_device())
    return device


def stream_handle(device: torch.device, stream: torch.cuda.Stream | int | None = None) -> int:
    """The raw handle of a stream, of the current one for None; 0 on a CPU."""
    if device.type != "cuda":
        return 0
    if stream is None:
        stream = torch.cuda.current_stream(device)
    return stream if isinstance(stream, int) else int(stream.cuda_stream)


def refuse_capture(device: torch.device, what: str, advice: str) -> None:
    """RuntimeError with `advice` when `what` would have to be allocated during a CUDA graph capture."""
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(f"{what} can't be allocated while a CUDA graph is being captured: {advice}")


def _allocate(key: Key, splits: int) -> Workspace:
    shape = (splits, WORKSPACE_ROWS, key.heads)
    # The caching allocator reuses memory in the order of the stream it was allocated on.
    with _on_stream(key):
        acc = torch.empty((*shape, key.head_dim), dtype=torch.float32, device=key.device)
        max_sum = torch.empty((*shape, 2), dtype=torch.float32, device=key.device)
    return Workspace(kind=key.kind, device=key.device, stream=key.stream, acc=acc, max_sum=max_sum)


def _on_stream(key: Key) -> AbstractContextManager[object]:
    if key.stream == stream_handle(key.device):
        return nullcontext()
    stream = torch.cuda.ExternalStream(key.stream, device=key.device)  # type: ignore[no-untyped-call]
    return torch.cuda.stream(stream)
