"""A forest plot: every comparison's interval beside the margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.abba.outcome import Result

COLOURS = {"slower": "#b2182b", "faster": "#2166ac", "same": "#1b7837", "undecided": "#b8860b"}
OTHER_COLOUR = "#777777"
# What a file says of who made it, so that no other is replaced.
MAKER = "kernelgate abba"
FIELDS = {".png": "Software"}


class PlotError(RuntimeError):
    """The plot can't be drawn; the message says what to install."""


def draw(results: Sequence[Result], path: Path, *, margin: float, title: str) -> None:
    """Write an SVG, PNG or PDF, as the suffix of `path` says; PlotError without matplotlib."""
    figure = _figure(1.4 + 0.45 * len(results))
    axes = figure.subplots()
    axes.axvspan(-100 * margin, 100 * margin, color="#dddddd", zorder=0, label=f"margin ±{margin:.2%}")
    axes.axvline(0.0, color="black", linewidth=0.8)
    for at, result in enumerate(results):
        _whisker(axes, at, result)
    axes.set_yticks(range(len(results)), [result.name for result in results])
    axes.set_ylim(len(results) - 0.5, -0.5)
    axes.set_xlabel("candidate ÷ base - 1, %: right of 0 is slower")
    axes.set_title(title, fontsize="medium")
    axes.legend(loc="best", fontsize="small")
    try:
        figure.savefig(path, dpi=150, metadata={FIELDS.get(path.suffix.lower(), "Creator"): MAKER})
    except ValueError as error:
        raise PlotError(f"{path}: {error}") from error


def is_plot(path: Path) -> bool:
    """Whether a file is empty, or a plot that `draw` made."""
    content = path.read_bytes() if path.is_file() else b"not a file"
    return not content or MAKER.encode() in content


def _figure(height_inches: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError("plotting needs matplotlib: pip install matplotlib") from error
    return Figure(figsize=(7.5, height_inches), layout="constrained")


def _whisker(axes: Any, at: int, result: Result) -> None:
    found = result.comparison
    colour = COLOURS.get(found.word, OTHER_COLOUR)
    ends = [found.interval.low, found.interval.high]
    if result.log_ratio is None or not all(math.isfinite(end) for end in ends):
        axes.text(0.0, at, f" {found.word}: no interval", va="center", color=colour)
        return
    low, middle, high = (100 * math.expm1(value) for value in (ends[0], result.log_ratio, ends[1]))
    axes.plot([low, high], [at, at], color=colour, linewidth=2)
    axes.plot([min(max(middle, low), high)], [at], marker="s", color=colour)
    axes.annotate(found.word, (high, at), xytext=(5, 4), textcoords="offset points", color=colour)
