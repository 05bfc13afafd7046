"""Draws calls until one fails, a number is reached or time is up; hypothesis makes the failing one small."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from fixtures.cases import Spec, drawn
from fixtures.cases.drawn import Seeded, Source
from fixtures.draw import mix
from regression.call import one_thread
from regression.contract.gates import Violation

# One drawn call in so many is a wrong one, which must be refused.
WRONG_ONE_IN = 5
SHRINK_S = 45.0

Check = Callable[[Spec], tuple[Violation, ...]]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A call, and what of its outcome was wrong."""

    spec: Spec
    violations: tuple[Violation, ...]


@dataclass(kw_only=True)
class Exploration:
    """One run: how many calls, and the failing ones. `until_s` is on time.monotonic's clock."""

    check: Check
    until_s: float = float("inf")
    tick: Callable[[int], None] = lambda _count: None
    ran: int = 0
    refused: int = 0
    failures: list[Failure] = field(default_factory=list)

    def try_one(self, spec: Spec) -> bool:
        """Check one call; whether it came out as it must. EnoughError when time is up."""
        if time.monotonic() > self.until_s:
            raise EnoughError
        violations = self.check(spec)
        self.ran += 1
        self.refused += spec.refusal is not None
        self.tick(self.ran)
        if violations:
            if not self.failures:
                self.until_s = min(self.until_s, time.monotonic() + SHRINK_S)
            self.failures.append(Failure(spec=spec, violations=violations))
        return not violations

    def smallest(self) -> Failure | None:
        """The failing call of the fewest words."""
        return min(self.failures, key=lambda failure: len(drawn.text([failure.spec])), default=None)


class EnoughError(BaseException):
    """Time is up: through hypothesis, which would take an Exception for a failure."""


class BrokenError(Exception):
    """What hypothesis sees of a failing call."""


def any_call(source: Source) -> Spec:
    """A valid call or, now and then, a wrong one."""
    is_wrong = source.integer(0, WRONG_ONE_IN - 1) == WRONG_ONE_IN - 1
    return drawn.draw_wrong(source) if is_wrong else drawn.draw(source)


def repeat(exploration: Exploration, specs: Sequence[Spec]) -> None:
    """Check calls that are known, all of them."""
    with suppress(EnoughError), one_thread():
        for spec in specs:
            exploration.try_one(spec)


def explore(exploration: Exploration, *, seed: int, examples: int) -> None:
    """Draw calls from the seed until one fails; then, with hypothesis, smaller ones that fail too."""
    with suppress(EnoughError), one_thread():
        (_by_hypothesis if has_hypothesis() else _by_seed)(exploration, seed, examples)


def has_hypothesis() -> bool:
    """Whether a failing call can be made small here."""
    try:
        import hypothesis  # noqa: F401
    except ImportError:
        return False
    return True


def _by_seed(exploration: Exploration, seed: int, examples: int) -> None:
    for number in range(examples):
        if not exploration.try_one(any_call(Seeded(seed=mix(seed ^ mix(number))))):
            return


def _by_hypothesis(exploration: Exploration, seed: int, examples: int) -> None:
    import hypothesis
    from hypothesis import strategies

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        print_blob=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategies.data())
    def run(data: Any) -> None:
        if not exploration.try_one(any_call(_Drawing(data=data))):
            raise BrokenError

    with suppress(BrokenError):
        run()


@dataclass(frozen=True, kw_only=True)
class _Drawing:
    """hypothesis as a source."""

    data: Any

    def integer(self, least: int, most: int) -> int:
        from hypothesis import strategies

        return int(self.data.draw(strategies.integers(least, most)))
