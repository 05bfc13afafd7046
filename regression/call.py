"""One guarded call of a target: poisoned output and workspace, inputs watched."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from fixtures.inputs import Inputs

from regression import poison
from regression.bits import Array
from regression.target import OP, Target

SMALL_INPUTS = ("q", "block_table", "row_lens")
CACHES = ("k_cache", "v_cache")


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one call left behind. `out` is fp16 [R, H, D]; the counts are of elements."""

    out: Array
    unwritten: int
    strayed: int
    modified_inputs: tuple[str, ...]


def attend(target: Target, inputs: Inputs, *, watch_caches: bool) -> Answer:
    """Run the operation once on a poisoned output and workspace.

    q, block table and lengths are always watched for changes, the caches when asked: they cost a copy.
    """
    names = SMALL_INPUTS + (CACHES if watch_caches else ())
    before = {name: fingerprint(getattr(inputs, name)) for name in names}
    output = poison.output(tuple(inputs.q.shape), inputs.q.device)
    target.attend(*tensors(inputs), **scales(inputs), **_workspace(target, inputs), out=output.out)
    out = output.out.cpu().numpy().copy()
    return Answer(
        out=out,
        unwritten=output.unwritten(),
        strayed=output.strayed(),
        modified_inputs=tuple(n for n in names if fingerprint(getattr(inputs, n)) != before[n]),
    )


def partials(target: Target, inputs: Inputs) -> tuple[Array, Array]:
    """The debug operation's fp32 [S, R, H, D] and [S, R, H, 2]. The target must have one."""
    if target.partials is None:
        raise ValueError(f"{target.label} has no debug operation")
    acc, max_sum = target.partials(*tensors(inputs), **scales(inputs))
    return acc.cpu().numpy(), max_sum.cpu().numpy()


def tensors(inputs: Inputs) -> tuple[torch.Tensor, ...]:
    """The operation's positional arguments."""
    return inputs.q, inputs.k_cache, inputs.v_cache, inputs.block_table, inputs.row_lens


def scales(inputs: Inputs) -> dict[str, float]:
    """Its scales."""
    return {name: getattr(inputs, name) for name in ("softmax_scale", "k_scale", "v_scale")}


def fingerprint(tensor: torch.Tensor) -> str:
    """A hash of the bytes of a tensor's storage: what lies between the strides counts too."""
    storage = torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())
    return hashlib.blake2b(np.ascontiguousarray(storage.cpu().numpy()), digest_size=16).hexdigest()


def _workspace(target: Target, inputs: Inputs) -> dict[str, Any]:
    if target.extension is None:
        return {}
    _, heads, head_dim = inputs.q.shape
    workspace = target.extension.workspace(OP, heads=heads, head_dim=head_dim, device=inputs.q.device)
    poison.fill(tuple(workspace.tensors))
    return {"workspace": workspace}
