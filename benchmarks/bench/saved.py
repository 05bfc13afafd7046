"""Runs that pytest-benchmark saved before, and how much slower a test may be than in one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STATISTICS = ("min", "median", "mean", "max")
_EXPRESSION = re.compile(rf"(?P<name>{'|'.join(STATISTICS)}):(?P<percent>\d+(\.\d+)?)%")


class SavedError(ValueError):
    """A threshold or a saved run that can't be read; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """`statistic` may exceed the saved run's by the fraction `rise`."""

    statistic: str
    rise: float

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """From `median:5%`, as pytest-benchmark's --benchmark-compare-fail writes it."""
        found = _EXPRESSION.fullmatch(text)
        if found is None:
            raise SavedError(f"threshold {text!r} is not like median:5%; statistics: {', '.join(STATISTICS)}")
        return cls(statistic=found["name"], rise=float(found["percent"]) / 100)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A test's statistic in s, now and in the saved run `source`; both None without such a run."""

    threshold: Threshold
    now_s: float
    then_s: float | None = None
    source: str | None = None

    @property
    def word(self) -> str:
        """slower, within, or unknown when there is nothing to compare with."""
        if self.then_s is None:
            return "unknown"
        return "slower" if self.now_s > self.then_s * (1 + self.threshold.rise) else "within"

    def text(self) -> str:
        """One line for a person."""
        if self.then_s is None:
            return "no saved run of this test on this machine to compare with"
        change = self.now_s / self.then_s - 1
        name = self.threshold.statistic
        return (
            f"{name} {1e6 * self.now_s:.2f} µs, {change:+.1%} against {1e6 * self.then_s:.2f} µs of "
            f"{self.source}; allowed {self.threshold.rise:+.1%}"
        )


def compare(
    folder: Path, key: Mapping[str, str], statistics: Mapping[str, float], threshold: Threshold, run: str = ""
) -> Comparison:
    """Hold a test against the newest saved run that passed, or the one whose number is `run`.

    `key` must agree in full: test, machine, clock, protocol. SavedError when `run` names none.
    """
    now = Comparison(threshold=threshold, now_s=statistics[threshold.statistic])
    paths = sorted(folder.rglob(f"{run}*.json"))
    if run and not paths:
        raise SavedError(f"{folder} holds no run {run}")
    for path in reversed(paths):
        entry = _find(path, key)
        if entry is not None:
            then = float(entry["stats"][threshold.statistic])
            return Comparison(threshold=threshold, now_s=now.now_s, then_s=then, source=path.stem)
    return now


def _find(path: Path, key: Mapping[str, str]) -> Mapping[str, Any] | None:
    """A run's entry of that key; one that failed is no reference, else each run could be a little slower."""
    try:
        value = json.loads(path.read_bytes())
        for entry in value["benchmarks"]:
            info = entry["extra_info"]
            if info.get("key") == dict(key) and info.get("passed"):
                found: Mapping[str, Any] = entry
                return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SavedError(f"{path}: not a saved run ({error!r}): move it away") from error
    return None
