"""The calls that both sides make: the same inputs, one set of output buffers, two workspaces in turn.

Where a workspace lies can cost time. So the first capture of a pair uses one and the second the other,
whichever side it is, and mirrored rounds cancel what they differ by. Sides whose workspaces differ in shape
keep their own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from benchmarks.abba.guards import AlarmError
from benchmarks.abba.sampling import BASE
from benchmarks.abba.subjects import OP, Contender
from benchmarks.latency import problem
from benchmarks.latency.problem import Problem, Shape
from grouped_attention.workspace import Workspace

PLACEMENTS = 4  # workspaces that pairs use in turn
POISON, OTHER_POISON = 0x7E5A, 0x7D3C  # NaNs that no kernel stores: the contract's only one is 0x7FFF
Call = Callable[[], object]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Per side and placement, one call per copy of the inputs; per side, the bits that eager calls gave."""

    outputs: torch.Tensor  # int16 bits, [copies, R, H, D]
    calls: Mapping[str, Sequence[Sequence[Call]]]
    truth: Mapping[str, torch.Tensor]

    def poison(self) -> None:
        """Fill all outputs with what no kernel writes."""
        self.outputs.fill_(POISON)

    def wrong(self, side: str) -> torch.Tensor:
        """How many output elements aren't the eager call's; a tensor, so that a GPU needn't be waited for."""
        return (self.outputs != self.truth[side]).sum()


def make(sides: Mapping[str, Contender], shape: Shape, *, copies: int, device: torch.device) -> Workload:
    """Both sides on `copies` random problems of one shape; each side is called once for its own bits.

    AlarmError when a side raises on them, or leaves output elements unwritten.
    """
    problems = [problem.make(shape, seed, device) for seed in range(copies)]
    out = torch.empty((copies, *problems[0].q.shape), dtype=torch.float16, device=device)
    with named_failures(sides):
        spaces = [_workspace(contender, shape, device) for contender in sides.values()]
    shared = placements(spaces[0])
    calls, truth = {}, {}
    for (side, contender), own in zip(sides.items(), spaces, strict=True):
        used = shared if exchangeable(*spaces) else placements(own)
        calls[side] = [_calls(contender, problems, out, shape, space) for space in used]
        truth[side] = _truth(side, calls[side][0], out)
    return Workload(outputs=out.view(torch.int16), calls=calls, truth=truth)


def exchangeable(one: Workspace | None, other: Workspace | None) -> bool:
    """True when both are there and alike, so that either side can use either."""
    if one is None or other is None:
        return False
    return [t.shape for t in one.tensors] == [t.shape for t in other.tensors]


def placements(space: Workspace | None) -> list[Workspace | None]:
    """The workspace and others like it elsewhere in memory."""
    if space is None:
        return [None] * PLACEMENTS
    tensors = ((torch.empty_like(space.acc), torch.empty_like(space.max_sum)) for _ in range(1, PLACEMENTS))
    return [space, *(replace(space, acc=acc, max_sum=max_sum) for acc, max_sum in tensors)]


def placement(captures: int) -> int:
    """Which placement the next capture uses, after so many: both captures of a pair the same."""
    return captures // 2 % PLACEMENTS


@contextmanager
def named_failures(sides: Iterable[str]) -> Iterator[None]:
    """Whatever a side raises, sys.exit() among it, as an AlarmError that names the side."""
    try:
        yield
    except RuntimeError as error:
        raise AlarmError("kernel-failed", f"the {' or '.join(sides)} raised: {error}") from error
    except (Exception, SystemExit) as error:
        raise AlarmError("kernel-failed", f"the {' or '.join(sides)} raised: {error!r}") from error


def _workspace(contender: Contender, shape: Shape, device: torch.device) -> Workspace | None:
    if contender.extension is None:
        return None
    sizes = {"heads": shape.heads, "head_dim": shape.head_dim, "device": device}
    made: Workspace = contender.extension.workspace(OP, **sizes)
    return made


def _calls(
    contender: Contender,
    problems: Sequence[Problem],
    out: torch.Tensor,
    shape: Shape,
    space: Workspace | None,
) -> list[Call]:
    fixed: dict[str, Any] = {"softmax_scale": shape.head_dim**-0.5, "k_scale": 1.0, "v_scale": 1.0}
    if space is not None:
        fixed["workspace"] = space
    op = functools.partial(contender.attend, **fixed)
    return [functools.partial(op, *one.arguments, out=out[at]) for at, one in enumerate(problems)]


def _truth(side: str, calls: Sequence[Call], out: torch.Tensor) -> torch.Tensor:
    """The bits that eager calls give; AlarmError when some keep the poison that was there before."""
    with named_failures([side]):
        first, second = (_eager_bits(calls, out, poison) for poison in (POISON, OTHER_POISON))
    # What is stored and looks like one poison looks so under the other too.
    left = ((first == POISON) | (second == OTHER_POISON)) & (first != second)
    if unwritten := int(left.sum()):
        text = f"an eager call of the {side} leaves {unwritten} of {left.numel()} output elements unwritten"
        is_base = side == BASE
        raise AlarmError("base-unwritten" if is_base else "unwritten-output", text, rejects=not is_base)
    return first


def _eager_bits(calls: Sequence[Call], out: torch.Tensor, poison: int) -> torch.Tensor:
    bits = out.view(torch.int16)
    bits.fill_(poison)
    for call in calls:
        call()
    return bits.clone()
