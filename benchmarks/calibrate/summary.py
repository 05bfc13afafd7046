"""What many trials say of each case: false-alarm rate or power, time, the least ratio that would be found."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from benchmarks.abba.decision import UNKNOWN
from benchmarks.calibrate import rates
from benchmarks.calibrate.rates import Rate
from benchmarks.calibrate.trials import Trial

DETECTION = 0.9
ALL_NULLS = "identical code"


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Of one kind and context, or of all contexts (`context` None). `least_ratio` is given for A/A trials:

    a slowdown by it would have been found in 90 % of them, had it shifted their intervals and nothing else.
    `ratio` is the median estimate of candidate ÷ base. `process_deviation` is of the log ratio, between
    processes beyond what their trials explain; None of one. `judged`: the calibration's verdict rests on it.
    """

    kind: str
    null: bool
    judged: bool
    context: int | None
    rate: Rate
    unknown: int  # trials that ended without a word: no false alarm, and no detection either
    ratio: float | None
    median_s: float
    setup_s: float  # median of what the inputs took before the first capture; not in `median_s`
    least_ratio: float | None
    process_deviation: float | None


def summarise(trials: Sequence[Trial]) -> list[Summary]:
    """All trials of identical code together, then each kind; each pooled over its contexts, then by context.

    The verdict rests on the first of them and on the planted slowdowns that weren't declared as shown only.
    """
    kinds = sorted({(not trial.null, trial.kind) for trial in trials})
    nulls = [trial for trial in trials if trial.null]
    together = len({trial.kind for trial in nulls}) > 1
    found = _rows([replace(trial, kind=ALL_NULLS) for trial in nulls]) if together else []
    for planted, kind in kinds:
        rows = _rows([trial for trial in trials if trial.kind == kind])
        found.extend(rows if planted or not together else (replace(row, judged=False) for row in rows))
    return found


def to_json(summary: Summary) -> dict[str, Any]:
    """As records keep it."""
    return asdict(summary)


def _rows(mine: Sequence[Trial]) -> list[Summary]:
    contexts = sorted({trial.context for trial in mine})
    split = contexts if len(contexts) > 1 else []
    return [_one(mine, None), *(_one([t for t in mine if t.context == c], c) for c in split)]


def _one(trials: Sequence[Trial], context: int | None) -> Summary:
    null = trials[0].null
    known = [trial for trial in trials if trial.word != UNKNOWN]
    hits = sum(trial.alarm if null else trial.found for trial in known)
    counted = len(known) if null else len(trials)
    return Summary(
        kind=trials[0].kind,
        null=null,
        judged=trials[0].judged,
        context=context,
        rate=rates.rate(hits, counted),
        unknown=len(trials) - len(known),
        ratio=math.exp(statistics.median(trial.centre for trial in known)) if known else None,
        median_s=statistics.median(trial.seconds for trial in trials),
        setup_s=statistics.median(trial.setup_s for trial in trials),
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
