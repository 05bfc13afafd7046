"""What must hold of a case: exact bits, NaN in place, controls, the budget, bounds of partials, states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from fixtures import oracle
from fixtures.cases import Case
from fixtures.inputs import Inputs
from regression import bits, call
from regression.call import KernelError
from regression.contract.states import broken_states
from regression.target import Target


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A broken gate: kernel-failed, output-written or one of GATES; and what broke it."""

    gate: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A case, what is run on it, its output, and the FP64 truth of inputs that no kernel had seen yet."""

    case: Case
    target: Target
    out: Tensor
    truth: Tensor


Gate = Callable[[Trial], Iterator[str]]


def check(case: Case, target: Target) -> tuple[Violation, ...]:
    """Run a case, whose inputs lie on the target's device, through all gates that it has expectations for."""
    truth = oracle.attend(case.inputs).out
    try:
        answer = call.attend(target, case.inputs)
        broken = [Violation(gate="output-written", text=text) for text in _written(answer)]
        trial = Trial(case=case, target=target, out=answer.out, truth=truth)
        for gate, rule in GATES.items():
            broken += [Violation(gate=gate, text=f"{case.name}: {text}") for text in rule(trial)]
    except KernelError as error:
        return (Violation(gate="kernel-failed", text=f"{case.name}: {error}"),)
    return tuple(broken)


def uncovered(case: Case, target: Target) -> tuple[str, ...]:
    """Gates that the case has expectations for, and the target nothing to hold them against."""
    return ("partial-bound",) if case.partial_bound is not None and target.partials is None else ()


def _written(answer: call.Answer) -> Iterator[str]:
    if answer.unwritten or answer.strayed:
        yield f"{answer.unwritten} elements unwritten, {answer.strayed} written beside the output"
    if answer.modified_inputs:
        yield f"inputs changed: {', '.join(answer.modified_inputs)}"


def _exact(trial: Trial) -> Iterator[str]:
    if trial.case.exact is not None:
        yield from different(_canonical(trial.case.exact), trial.out)


def _nan(trial: Trial) -> Iterator[str]:
    if trial.case.nan is None:
        return
    wrong = trial.out.isnan() != trial.case.nan
    if wrong.any():
        yield f"{int(wrong.sum())} elements are NaN and should not be, or the other way round"
    stored = trial.out.view(torch.int16)[trial.out.isnan()]
    if (stored != 0x7FFF).any():
        yield "a NaN is not stored as 0x7FFF"


def _control(trial: Trial) -> Iterator[str]:
    if trial.case.control is not None:
        control = call.attend(trial.target, trial.case.control).out
        order = list(trial.case.order) or list(range(len(control)))
        yield from different(control[order], trial.out, ignored=trial.case.nan)


def _budget(trial: Trial) -> Iterator[str]:
    if trial.case.budgeted:
        yield from over_budget(trial.out, trial.truth)


def _partial_bound(trial: Trial) -> Iterator[str]:
    bound = trial.case.partial_bound
    if bound is None or trial.target.partials is None:
        return
    error = oracle.partial_error(*call.partials(trial.target, trial.case.inputs), trial.truth)
    if not error < bound:
        yield f"relative L2 of the partials {error:.2e}, must be under {bound:.0e}"


def _states(trial: Trial) -> Iterator[str]:
    yield from broken_states(trial.case, trial.target, different)


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
    truth = oracle.attend(inputs).out
    return oracle.partial_error(*call.partials(target, inputs), truth)


def over_budget(out: Tensor, truth: Tensor) -> Iterator[str]:
    """A complaint when the output is further from the truth than its rounding allows."""
    error, allowed = oracle.relative_l2(out, truth), oracle.budget(truth)
    if not error <= allowed:
        yield f"relative L2 {error:.3e} over {allowed:.3e}"


def different(expected: Tensor, out: Tensor, *, ignored: Tensor | None = None) -> Iterator[str]:
    """Where the bits differ first, outside `ignored`."""
    if ignored is not None:
        expected, out = expected.masked_fill(ignored, 0), out.masked_fill(ignored, 0)
    found = bits.first_difference(expected.numpy(), out.numpy())
    if found is not None:
        yield f"first difference at {found.text().replace('golden', 'expected')}"


def _canonical(values: Tensor) -> Tensor:
    """fp16 values with the one NaN that a kernel stores, contiguous."""
    raw = values.contiguous().clone().view(torch.int16)
    return raw.masked_fill(values.isnan(), 0x7FFF).view(torch.float16)
