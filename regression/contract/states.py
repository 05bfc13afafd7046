"""Lengths that change in place: between calls on a CPU, between replays of one captured graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from fixtures.cases import Case
from fixtures.inputs import Inputs
from regression import call
from regression.target import Target

Different = Callable[[Tensor, Tensor], Iterator[str]]


def broken_states(case: Case, target: Target, different: Different) -> Iterator[str]:
    """Each state must give a fresh call's bits, on a workspace that the last one left, and empty rows +0."""
    if not case.states:
        return
    lens, live = case.inputs.row_lens, case.inputs.row_lens.clone()
    again = _captured(case.inputs, target) if target.device == "cuda" else _called(case.inputs, target)
    for number, state in enumerate(case.states):
        lens.copy_(torch.tensor(state, dtype=torch.int32))
        kept = again()
        lens.copy_(torch.tensor(state, dtype=torch.int32))
        answer = call.attend(target, case.inputs)
        for text in (*different(answer.out, kept), *(f"{name} changed" for name in answer.modified_inputs)):
            yield f"state {number} {state}: {text}"
        if (kept[torch.tensor(state) <= 0].view(torch.int16) != 0).any():
            yield f"state {number} {state}: an empty row is not +0"
    lens.copy_(live)


def _called(inputs: Inputs, target: Target) -> Callable[[], Tensor]:
    return lambda: call.attend(target, inputs, poisoned_workspace=False).out


def _captured(inputs: Inputs, target: Target) -> Callable[[], Tensor]:
    out = torch.empty_like(inputs.q)
    options = call.workspace(target, inputs)
    # Whatever is loaded or allocated at a first call must not happen inside the capture.
    with call.failures(target):
        target.attend(*inputs.tensors, **inputs.scales, **options, out=out)
    graph = torch.cuda.CUDAGraph()
    with call.failures(target), torch.cuda.graph(graph):
        target.attend(*inputs.tensors, **inputs.scales, **options, out=out)

    def replay() -> Tensor:
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        return out.cpu().clone()

    return replay
