"""Whether a machine's timing errs seldom enough, by limits that were declared with the study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.calibrate.summary import Summary
from evidence.ending import Verdict

GOOD, OPEN, BAD = "good", "open", "bad"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Rates that must be shown, by their one-sided 95 % bounds; `most_median_s` is of every context."""

    most_false_alarms: float = 0.1
    least_power: float = 0.9
    most_median_s: float | None = None


def judge(summaries: Sequence[Summary], limits: Limits, *, missing: int) -> Verdict:
    """Over the judged rows pooled over contexts: shown beyond a limit rejects, shown within it admits."""
    pooled = [one for one in summaries if one.context is None and one.judged]
    if not pooled:
        return Verdict(word="unknown", code="no-trials", text="there is no trial that it could be judged by")
    text = "; ".join([*(f"{name(one)}: {one.rate.hits} of {one.rate.trials}" for one in pooled)])
    states = [state(one, limits) for one in pooled]
    slow = too_slow(summaries, limits)
    if missing > 0:
        return Verdict(word="undecided", code="too-few-trials", text=f"{missing} more were declared; {text}")
    if BAD in states or slow:
        return Verdict(word="rejected", code="calibration-bad", text="; ".join([text, *slow]))
    if OPEN in states:
        return Verdict(word="undecided", code="too-few-trials", text=text)
    return Verdict(word="admitted", code="calibrated", text=text)


def state(one: Summary, limits: Limits) -> str:
    """Good, bad, or open: what a row's bounds show of its limit."""
    low, high = one.rate.low, one.rate.high
    if one.null:
        most = limits.most_false_alarms
        return BAD if low > most else GOOD if high <= most else OPEN
    least = limits.least_power
    return BAD if high < least else GOOD if low >= least else OPEN


def too_slow(summaries: Sequence[Summary], limits: Limits) -> list[str]:
    """The rows whose median trial took longer than it may."""
    if limits.most_median_s is None:
        return []
    return [
        f"{one.kind} {_where(one)} takes {one.median_s:.1f} s in the median"
        for one in summaries
        if one.judged and one.median_s > limits.most_median_s
    ]


def _where(one: Summary) -> str:
    return "over all contexts" if one.context is None else f"at {one.context}"


def name(one: Summary) -> str:
    """What is counted in a row."""
    return f"{one.kind} called {'different' if one.null else 'slower'}"
