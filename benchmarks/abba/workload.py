"""The calls that both sides make: the same inputs, one set of output buffers, each side's own workspace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.abba import guards
from benchmarks.abba.subjects import OP, Contender
from benchmarks.latency import problem
from benchmarks.latency.problem import Problem, Shape

POISON = 0x7E5A  # a NaN that no kernel stores: the contract's only NaN is 0x7FFF
Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Per side, one call per copy of the inputs, and the bits that an eager call of each gave."""

    outputs: torch.Tensor  # int16 bits, [copies, R, H, D]
    calls: Mapping[str, Sequence[Call]]
    truth: Mapping[str, torch.Tensor]

    def poison(self) -> None:
        """Fill all outputs with what no kernel writes."""
        self.outputs.fill_(POISON)

    def wrong(self, side: str) -> torch.Tensor:
        """How many output elements aren't the eager call's; a tensor, so that a GPU needn't be waited for."""
        return (self.outputs != self.truth[side]).sum()


def make(sides: Mapping[str, Contender], shape: Shape, *, copies: int, device: torch.device) -> Workload:
    """Both sides on `copies` random problems of one shape; each side is called once for its own bits.

    AlarmError when a side raises on them.
    """
    problems = [problem.make(shape, seed, device) for seed in range(copies)]
    out = torch.empty((copies, *problems[0].q.shape), dtype=torch.float16, device=device)
    bits = out.view(torch.int16)
    calls, truth = {}, {}
    for side, contender in sides.items():
        bits.fill_(POISON)
        try:
            calls[side] = _calls(contender, problems, out, shape)
            for call in calls[side]:
                call()
        except (RuntimeError, TypeError, ValueError) as error:
            raise guards.AlarmError("kernel-failed", f"the {side} raised: {error}") from error
        truth[side] = bits.clone()
    return Workload(outputs=bits, calls=calls, truth=truth)


def _calls(contender: Contender, problems: Sequence[Problem], out: torch.Tensor, shape: Shape) -> list[Call]:
    fixed = {"softmax_scale": shape.head_dim**-0.5, "k_scale": 1.0, "v_scale": 1.0}
    extension = contender.extension
    if extension is not None:
        sizes = {"heads": shape.heads, "head_dim": shape.head_dim, "device": out.device}
        fixed["workspace"] = extension.workspace(OP, **sizes)
    op = functools.partial(contender.attend, **fixed)
    return [functools.partial(op, *one.arguments, out=out[at]) for at, one in enumerate(problems)]
