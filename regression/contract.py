"""What must hold of made-up cases (`fixtures.cases`): exact bits, NaN in place, controls, bounds, states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fixtures import oracle
from fixtures.cases import Case
from fixtures.inputs import Inputs
from regression import bits, call
from regression.target import Target


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A broken gate: output-written or one of GATES; and what broke it."""

    gate: str
    text: str


Gate = Callable[[Case, Target, Tensor], Iterator[str]]


def check(case: Case, target: Target) -> tuple[Violation, ...]:
    """Run a case, whose inputs lie on the target's device, through all gates that it has expectations for."""
    answer = call.attend(target, case.inputs, watch_caches=False)
    broken = [Violation(gate="output-written", text=text) for text in _written(answer)]
    for gate, rule in GATES.items():
        broken += [
            Violation(gate=gate, text=f"{case.name}: {text}") for text in rule(case, target, answer.out)
        ]
    return tuple(broken)


def _written(answer: call.Answer) -> Iterator[str]:
    if answer.unwritten or answer.strayed or answer.modified_inputs:
        changed = ", ".join(answer.modified_inputs) or "none"
        yield f"{answer.unwritten} elements unwritten, {answer.strayed} beside; inputs changed: {changed}"


def _exact(case: Case, _target: Target, out: Tensor) -> Iterator[str]:
    if case.exact is not None:
        yield from _different(_canonical(case.exact), out)


def _nan(case: Case, _target: Target, out: Tensor) -> Iterator[str]:
    if case.nan is None:
        return
    wrong = out.isnan() != case.nan
    if wrong.any():
        yield f"{int(wrong.sum())} elements are NaN and should not be, or the other way round"
    stored = out.view(torch.int16)[out.isnan()]
    if (stored != 0x7FFF).any():
        yield "a NaN is not stored as 0x7FFF"


def _control(case: Case, target: Target, out: Tensor) -> Iterator[str]:
    if case.control is not None:
        control = call.attend(target, case.control, watch_caches=False).out
        yield from _different(control, out, ignored=case.nan)


def _budget(case: Case, _target: Target, out: Tensor) -> Iterator[str]:
    reference = oracle.attend(case.inputs).out
    error, allowed = oracle.relative_l2(out, reference), oracle.budget(reference)
    if not error <= allowed:
        yield f"relative L2 {error:.3e} over {allowed:.3e}"


def _partial_bound(case: Case, target: Target, _out: Tensor) -> Iterator[str]:
    if case.partial_bound is None:
        return
    error = partial_error(case.inputs, target)
    if not error < case.partial_bound:
        yield f"relative L2 of the partials {error:.2e}, must be under {case.partial_bound:.0e}"


def _states(case: Case, target: Target, _out: Tensor) -> Iterator[str]:
    """Lengths change in place, on one workspace; each state must give a fresh call's bits, empty rows +0."""
    live = case.inputs.row_lens.clone()
    for number, lens in enumerate(case.states):
        case.inputs.row_lens.copy_(torch.tensor(lens, dtype=torch.int32))
        kept = call.attend(target, case.inputs, watch_caches=False, poisoned_workspace=False).out
        fresh = call.attend(target, case.inputs, watch_caches=False).out
        for text in _different(fresh, kept):
            yield f"state {number} {lens}: {text}"
        empty = torch.tensor(lens) <= 0
        if (kept[empty].view(torch.int16) != 0).any():
            yield f"state {number} {lens}: an empty row is not +0"
    case.inputs.row_lens.copy_(live)


GATES: dict[str, Gate] = {
    "exact": _exact,
    "nan": _nan,
    "control": _control,
    "budget": _budget,
    "partial-bound": _partial_bound,
    "states": _states,
}


def partial_error(inputs: Inputs, target: Target) -> float:
    """Relative L2 of the partials, combined in FP64, against the oracle."""
    acc, max_sum = call.partials(target, inputs)
    return oracle.partial_error(acc, max_sum, oracle.attend(inputs).out)


def _different(expected: Tensor, out: Tensor, *, ignored: Tensor | None = None) -> Iterator[str]:
    """Where the bits differ, outside `ignored`."""
    if ignored is not None:
        expected, out = expected.masked_fill(ignored, 0), out.masked_fill(ignored, 0)
    found = bits.first_difference(expected.numpy(), out.numpy())
    if found is not None:
        yield f"first difference at {found.text().replace('golden', 'expected')}"


def _canonical(values: Tensor) -> Tensor:
    """fp16 values with the one NaN that a kernel stores, contiguous."""
    raw = values.contiguous().clone().view(torch.int16)
    return raw.masked_fill(values.isnan(), 0x7FFF).view(torch.float16)
