"""The evidence of a run: one record with every sample, pilot, warm-ups and voids included."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from benchmarks.abba import table
from benchmarks.abba.decision import Rule
from benchmarks.abba.engine import Comparison
from benchmarks.abba.outcome import Result
from benchmarks.abba.sampling import Block, Pair, Round
from benchmarks.abba.subjects import Contender
from evidence import record
from evidence.ending import OUTCOMES, Verdict
from evidence.record import Reason, Record

KIND = "abba"
DIGITS = 5  # of a µs; an event's resolution is half a µs over some ten calls


@dataclass(frozen=True, kw_only=True)
class Took:
    """When a run began, and how long it measured."""

    started: datetime
    seconds: float


def make(
    results: Sequence[Result],
    verdict: Verdict,
    rule: Rule,
    *,
    base: Contender,
    candidate: Contender,
    selection: Mapping[str, Any],
    notes: Sequence[str],
    took: Took,
) -> Record:
    """The record of a run that has just ended, judged."""
    return record.make(
        kind=KIND,
        artifact=candidate.subject,
        inputs="",
        selection={**selection, "base": base.subject.code_digest or base.subject.sha256},
        outcome=OUTCOMES[verdict.word],
        reasons=(Reason(code=verdict.code, text=verdict.text),),
        results={
            "sides": {"base": base.label, "candidate": candidate.label},
            "base": asdict(base.subject),
            "rule": {**asdict(rule), "family": "Bonferroni", "alpha_each": rule.alpha_each},
            "notes": list(notes),
            "comparisons": [comparison(result) for result in results],
        },
        started_at=took.started,
        duration_s=took.seconds,
    )


def comparison(result: Result) -> dict[str, Any]:
    """One member of the family as JSON; ratios are candidate ÷ base, null where nothing is known."""
    found = result.comparison
    return {
        **asdict(result.shape),
        "word": found.word,
        "rejects": found.rejects,
        "ratio": _ratio(result.log_ratio),
        "low": _ratio(found.interval.low),
        "high": _ratio(found.interval.high),
        "base_us": result.base_us,
        "valid_rounds": len(found.counted),
        "voids": table.voids(found.rounds),
        "launches": found.launches,
        "seconds": found.seconds,
        "alarm": None if found.alarm is None else {"code": found.alarm.code, "text": found.alarm.text},
        "design": None if found.design is None else asdict(found.design),
        "variance": _variance(found),
        "rounds": [_round(one) for one in found.rounds],
    }


def _variance(found: Comparison) -> dict[str, Any] | None:
    if found.components is None:
        return None
    return {**asdict(found.components), "shares": found.components.shares}


def _round(one: Round) -> dict[str, Any]:
    return {"pilot": one.pilot, "pairs": [_pair(pair) for pair in one.pairs]}


def _pair(pair: Pair) -> dict[str, Any]:
    return {"first": pair.first, "void": pair.void, "blocks": [_block(block) for block in pair.blocks]}


def _block(block: Block) -> dict[str, Any]:
    """Times in the order in which they were taken; the state only where there was one to see."""
    state = {name: value for name, value in asdict(block.state).items() if value not in (None, ())}
    times = [round(time, DIGITS) for leg in block.legs for time in leg.times_us]
    marks = {"warm_up": True} if block.warm_up else {}
    return {"order": block.order, "us": times, "state": state, "void": block.void, **marks}


def _ratio(log_ratio: float | None) -> float | None:
    return None if log_ratio is None or not math.isfinite(log_ratio) else math.exp(log_ratio)
