"""Replays groups through a target and compares with goldens and oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from fixtures import golden, oracle
from fixtures import inputs as fixture_inputs
from fixtures.golden import Golden
from fixtures.groups import Group
from fixtures.inputs import Inputs
from regression import bits, call, partials, truth
from regression.call import Answer
from regression.results import GroupResult, PartialDifference
from regression.target import Target

ReadGolden = Callable[[str], Golden | None]


@dataclass(frozen=True, kw_only=True)
class Play:
    """One group's result, and the golden that it could become; None when partials were not run."""

    result: GroupResult
    fresh: Golden | None


class Clock:
    """Seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Add the time of a block to a step."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def replay(
    groups: Sequence[Group], target: Target, read_golden: ReadGolden, *, check_partials: bool
) -> Iterator[Play]:
    """Play each group, in order. KernelError names the group at which the target failed."""
    for group in groups:
        try:
            yield play(group, target, read_golden(group.id), check_partials=check_partials)
        except call.KernelError as error:
            raise call.KernelError(f"group {group.id}: {error}") from error


def play(group: Group, target: Target, stored: Golden | None, *, check_partials: bool) -> Play:
    """Run one group and compare it."""
    clock = Clock()
    with clock.step("materialise"):
        inputs = fixture_inputs.materialise(group, device=target.device)
    with clock.step("oracle"):
        # Before the kernel, which might change what the truth is taken from.
        reference = oracle.attend(inputs).out
    with clock.step("kernel"):
        answer = call.attend(target, inputs)
    with clock.step("partials"):
        fresh = _fresh(group, target, inputs, answer) if check_partials else None
    with clock.step("compare"):
        result = compare(group, answer, fresh, stored, reference, clock.seconds)
    return Play(result=result, fresh=fresh)


def compare(
    group: Group,
    answer: Answer,
    fresh: Golden | None,
    stored: Golden | None,
    reference: Tensor,
    seconds: dict[str, float],
) -> GroupResult:
    """One group's answer against its golden and the oracle's fp64 [R, H, D]."""
    word, difference = _partials(fresh, stored)
    return GroupResult(
        id=group.id,
        instance=f"({group.heads}, {group.head_dim})",
        context=group.context,
        elements=answer.out.numel(),
        accuracy=truth.accuracy(answer.out, reference),
        partials=word,
        partial_difference=difference,
        unwritten=answer.unwritten,
        strayed=answer.strayed,
        modified_inputs=answer.modified_inputs,
        seconds=seconds,
        **_against_golden(answer.out, stored, reference),
    )


def _against_golden(out: Tensor, stored: Golden | None, reference: Tensor) -> dict[str, Any]:
    """The fields of a result that need a golden."""
    if stored is None:
        return {"mismatching": None}
    ours, theirs = out.numpy(), stored.out.numpy()
    return {
        "mismatching": int(bits.mismatches(theirs, ours).sum()),
        "first": bits.first_difference(theirs, ours, reference.numpy()),
        "golden_accuracy": truth.accuracy(stored.out, reference),
        "trend": truth.trend(out, stored.out, reference),
    }


def _fresh(group: Group, target: Target, inputs: Inputs, answer: Answer) -> Golden | None:
    return None if target.partials is None else golden.make(group, answer.out, *call.partials(target, inputs))


def _partials(fresh: Golden | None, stored: Golden | None) -> tuple[str, PartialDifference | None]:
    """A group's word for its partials, and where they differ."""
    if fresh is None:
        return "not run", None
    if stored is None:
        return "no golden", None
    difference = partials.difference(stored.digests, fresh.digests)
    return ("ok" if difference is None else "differ"), difference
