"""One trial: one comparison whose truth is known."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.abba import engine, sequence
from benchmarks.abba.decision import SLOWER, UNKNOWN, Rule
from benchmarks.abba.sampling import Bench
from benchmarks.calibrate import textbook

AA = "a/a"
ENGINE, TEXTBOOK = "engine", "textbook"
PROTOCOLS = (ENGINE, TEXTBOOK)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """`kind` names what was compared; a trial of identical code is `null`. Ends and `centre` are log ratios.

    One that isn't `judged` is shown only. `seconds` begin with the first capture, `setup_s` is what the
    inputs took before it. `process` tells the trials of one run from another's.
    """

    kind: str
    null: bool
    context: int
    word: str
    low: float
    high: float
    centre: float
    seconds: float
    rounds: int
    setup_s: float = 0.0
    judged: bool = True
    process: str = "now"

    @property
    def alarm(self) -> bool:
        """True when it calls the sides different."""
        return self.word not in ("same", "undecided", UNKNOWN)

    @property
    def found(self) -> bool:
        """True when it calls the candidate slower."""
        return self.word == SLOWER


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is repeated: a bench with two sides, and whether their code is the same."""

    kind: str
    null: bool
    context: int
    bench: Callable[[], Bench]
    judged: bool = True


def prepare(case: Case, rule: Rule, *, protocol: str, budget_s: float, source: random.Random) -> Trial:
    """Make the case's bench and run one trial on it."""
    start = time.perf_counter()
    bench = case.bench()
    setup_s = time.perf_counter() - start
    found = run(case, bench, rule, protocol=protocol, budget_s=budget_s, source=source)
    return replace(found, setup_s=setup_s)


def run(
    case: Case, bench: Bench, rule: Rule, *, protocol: str, budget_s: float, source: random.Random
) -> Trial:
    """One trial by the engine, or by the textbook."""
    if protocol == TEXTBOOK:
        return _textbook(case, bench, rule)
    found = engine.compare(bench, rule, budget_s=budget_s, source=source)
    values = [one.log_ratio for one in found.counted]
    ends = {"low": found.interval.low, "high": found.interval.high}
    ends["centre"] = sequence.centre(values) if values else math.nan
    return _trial(case, found.word, ends, found.seconds, len(found.counted))


def _textbook(case: Case, bench: Bench, rule: Rule) -> Trial:
    started = bench.seconds()
    # Its users test each context at 5 %, so that is what it is held to.
    found = textbook.interval(bench, alpha=rule.alpha)
    word = rule.word(found, rule.least_rounds)
    ends = {"low": found.low, "high": found.high, "centre": (found.low + found.high) / 2}
    return _trial(case, word, ends, bench.seconds() - started, textbook.BLOCKS)


def _trial(case: Case, word: str, ends: dict[str, float], seconds: float, rounds: int) -> Trial:
    known = {"kind": case.kind, "null": case.null, "context": case.context, "judged": case.judged}
    return Trial(word=word, seconds=seconds, rounds=rounds, **ends, **known)  # type: ignore[arg-type]


def to_json(trial: Trial) -> dict[str, Any]:
    """As records keep it; what is not finite becomes text."""
    return asdict(trial)


def from_json(value: dict[str, Any]) -> Trial:
    """Back from a record."""
    ends = {name: float(value[name]) for name in ("low", "high", "centre")}
    return Trial(**{**value, **ends})
