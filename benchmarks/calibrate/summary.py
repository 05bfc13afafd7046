"""What many trials say of each case: false-alarm rate or power, time, the least ratio that would be found."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.abba.decision import UNKNOWN, Verdict
from benchmarks.calibrate import rates
from benchmarks.calibrate.rates import Rate
from benchmarks.calibrate.trials import Trial

DETECTION = 0.9


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Of one kind and context, or of all contexts (`context` None). `least_ratio` is given for A/A trials:

    a slowdown by it would have been found in 90 % of them, had it shifted their intervals and nothing else.
    `process_deviation` is of the log ratio, between processes beyond what their trials explain; None of one.
    """

    kind: str
    null: bool
    context: int | None
    rate: Rate
    unknown: int  # trials that ended without a word: no false alarm, and no detection either
    median_s: float
    least_ratio: float | None
    process_deviation: float | None


def summarise(trials: Sequence[Trial]) -> list[Summary]:
    """Each kind pooled over its contexts, then by context."""
    kinds = sorted({(not trial.null, trial.kind) for trial in trials})
    found = []
    for _, kind in kinds:
        mine = [trial for trial in trials if trial.kind == kind]
        contexts = sorted({trial.context for trial in mine})
        found.append(_one(mine, None))
        if len(contexts) > 1:
            found.extend(_one([t for t in mine if t.context == context], context) for context in contexts)
    return found


def table(summaries: Sequence[Summary]) -> str:
    """Alarms of A/A trials are false; of planted slowdowns they are the power."""
    head = (
        "trials of",
        "context",
        "called",
        "of",
        "rate",
        "95 % bounds",
        "unknown",
        "median s",
        "finds",
        "processes",
    )
    rows = [head, *(_row(one) for one in summaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


def judge(
    summaries: Sequence[Summary], *, missing: int, most_false_alarms: float, least_power: float
) -> Verdict:
    """Over the pooled rows: shown above a limit rejects, shown below it admits, else undecided."""
    pooled = [one for one in summaries if one.context is None]
    states = {_name(one): _state(one, most_false_alarms, least_power) for one in pooled}
    text = "; ".join(
        f"{name}: {one.rate.hits} of {one.rate.trials}" for name, one in zip(states, pooled, strict=True)
    )
    if missing > 0:
        return Verdict(word="undecided", code="too-few-trials", text=f"{missing} more were declared; {text}")
    for state, word, code in (
        ("bad", "rejected", "calibration-bad"),
        ("open", "undecided", "too-few-trials"),
    ):
        if state in states.values():
            return Verdict(word=word, code=code, text=text)
    return Verdict(word="admitted", code="calibrated", text=text)


def to_json(summary: Summary) -> dict[str, Any]:
    """As records keep it."""
    return asdict(summary)


def _one(trials: Sequence[Trial], context: int | None) -> Summary:
    null = trials[0].null
    known = [trial for trial in trials if trial.word != UNKNOWN]
    hits = sum(trial.alarm if null else trial.found for trial in known)
    counted = len(known) if null else len(trials)
    return Summary(
        kind=trials[0].kind,
        null=null,
        context=context,
        rate=rates.rate(hits, counted),
        unknown=len(trials) - len(known),
        median_s=statistics.median(trial.seconds for trial in trials),
        least_ratio=_least_ratio(known) if null and known else None,
        process_deviation=_process_deviation(known),
    )


def _least_ratio(trials: Sequence[Trial]) -> float | None:
    """The quantile of how far below 0 the intervals begin."""
    below = sorted(-trial.low for trial in trials)
    found = below[min(len(below) - 1, math.ceil(DETECTION * len(below)) - 1)]
    return math.exp(max(0.0, found)) if math.isfinite(found) else None


def _process_deviation(trials: Sequence[Trial]) -> float | None:
    """By moments, within each context: the variance of the processes' means less that of their trials."""
    found = [_process_variance([t for t in trials if t.context == c]) for c in {t.context for t in trials}]
    known = [value for value in found if value is not None]
    return math.sqrt(max(0.0, statistics.fmean(known))) if known else None


def _process_variance(trials: Sequence[Trial]) -> float | None:
    groups: dict[str, list[float]] = {}
    for trial in trials:
        groups.setdefault(trial.process, []).append(trial.centre)
    several = [group for group in groups.values() if len(group) > 1]
    if len(several) < 2:
        return None
    explained = statistics.fmean(statistics.variance(group) / len(group) for group in several)
    return statistics.variance([statistics.fmean(group) for group in several]) - explained


def _state(one: Summary, most_false_alarms: float, least_power: float) -> str:
    low, high = one.rate.low, one.rate.high
    if one.null:
        return "bad" if low > most_false_alarms else "good" if high <= most_false_alarms else "open"
    return "bad" if high < least_power else "good" if low >= least_power else "open"


def _name(one: Summary) -> str:
    return f"{one.kind} called {'different' if one.null else 'slower'}"


def _row(one: Summary) -> tuple[str, ...]:
    found = one.rate
    value = f"{found.hits / found.trials:.1%}" if found.trials else "-"
    return (
        one.kind,
        "all" if one.context is None else str(one.context),
        str(found.hits),
        str(found.trials),
        value,
        f"{found.low:.1%} - {found.high:.1%}",
        str(one.unknown),
        f"{one.median_s:.2f}",
        "-" if one.least_ratio is None else f"{one.least_ratio:.4f}",
        "-" if one.process_deviation is None else f"{one.process_deviation:.3%}",
    )
