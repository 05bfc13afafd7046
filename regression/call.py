"""One guarded call of a target: poisoned output and workspace, inputs watched."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from fixtures.inputs import Inputs
from grouped_attention.workspace import stream_handle
from regression import poison
from regression.target import OP, Target

SMALL_INPUTS = ("q", "block_table", "row_lens")
CACHES = ("k_cache", "v_cache")


class KernelError(Exception):
    """The target raised on inputs that it must take, or returned something of the wrong shape."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one call left behind. `out` is fp16 [R, H, D] on the CPU; the counts are of elements."""

    out: Tensor
    unwritten: int
    strayed: int
    modified_inputs: tuple[str, ...]


def attend(target: Target, inputs: Inputs, *, watch_caches: bool, poisoned_workspace: bool = True) -> Answer:
    """Run the operation once on a poisoned output and workspace.

    q, block table and lengths are always watched for changes, the caches when asked: they cost a copy.
    `poisoned_workspace=False` leaves in the workspace what the last call left.
    """
    names = SMALL_INPUTS + (CACHES if watch_caches else ())
    before = {name: fingerprint(getattr(inputs, name)) for name in names}
    output = poison.output(tuple(inputs.q.shape), inputs.q.device)
    with _failures(target):
        target.attend(
            *tensors(inputs),
            **scales(inputs),
            **_workspace(target, inputs, poisoned_workspace),
            out=output.out,
        )
    return Answer(
        out=output.out.cpu().clone(),
        unwritten=output.unwritten(),
        strayed=output.strayed(),
        modified_inputs=tuple(n for n in names if fingerprint(getattr(inputs, n)) != before[n]),
    )


def partials(target: Target, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """The debug operation's fp32 [S, R, H, D] and [S, R, H, 2] on the CPU. The target must have one.

    A library writes into poisoned buffers; what a callable returns is taken as it is. KernelError when
    elements were left unwritten or a shape is wrong.
    """
    if target.partials is None:
        raise ValueError(f"{target.label} has no debug operation")
    with _failures(target):
        if target.extension is None:
            acc, max_sum = target.partials(*tensors(inputs), **scales(inputs))
        else:
            acc, max_sum = _poisoned_partials(target.extension, inputs)
        return _checked(acc.cpu(), max_sum.cpu(), inputs)


def _poisoned_partials(extension: Any, inputs: Inputs) -> tuple[Tensor, Tensor]:
    rows, heads, head_dim = inputs.q.shape
    device = inputs.q.device
    acc = poison.state((extension.splits, rows, heads, head_dim), device)
    max_sum = poison.state((extension.splits, rows, heads, 2), device)
    debug = extension.functions[f"{OP}_partials"]
    debug(*tensors(inputs), acc, max_sum, *scales(inputs).values(), stream_handle(device))
    return acc, max_sum


def _checked(acc: Tensor, max_sum: Tensor, inputs: Inputs) -> tuple[Tensor, Tensor]:
    rows, heads, head_dim = inputs.q.shape
    if acc.shape[1:] != (rows, heads, head_dim) or max_sum.shape != (acc.shape[0], rows, heads, 2):
        raise KernelError(f"partials have shapes {tuple(acc.shape)} and {tuple(max_sum.shape)}")
    left = poison.unwritten_state(acc) + poison.unwritten_state(max_sum)
    if left:
        raise KernelError(f"{left} elements of the partials were never written")
    return acc, max_sum


def tensors(inputs: Inputs) -> tuple[Tensor, ...]:
    """The operation's positional arguments."""
    return inputs.q, inputs.k_cache, inputs.v_cache, inputs.block_table, inputs.row_lens


def scales(inputs: Inputs) -> dict[str, float]:
    """Its scales, in the operation's order."""
    return {name: getattr(inputs, name) for name in ("softmax_scale", "k_scale", "v_scale")}


def fingerprint(tensor: Tensor) -> str:
    """A hash of the bytes of a tensor's storage: what lies between the strides counts too."""
    storage = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    return hashlib.blake2b(storage.cpu().numpy().tobytes(), digest_size=16).hexdigest()


@contextmanager
def _failures(target: Target) -> Iterator[None]:
    """What a target raises is its failure, except running out of memory, which is the machine's."""
    try:
        yield
        if target.device == "cuda":
            # A launch returns before it fails.
            torch.cuda.synchronize()
    except (MemoryError, torch.OutOfMemoryError, KernelError):
        raise
    except (Exception, SystemExit) as error:  # exit code 0 would read as admitted
        raise KernelError(f"{target.label}: {type(error).__name__}: {error}") from error


def _workspace(target: Target, inputs: Inputs, poisoned: bool) -> dict[str, Any]:
    if target.extension is None:
        return {}
    _, heads, head_dim = inputs.q.shape
    workspace = target.extension.workspace(OP, heads=heads, head_dim=head_dim, device=inputs.q.device)
    if poisoned:
        poison.fill(tuple(workspace.tensors))
    return {"workspace": workspace}
