"""Peers as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.latency.problem import Shape
from benchmarks.peers import catalogue
from benchmarks.peers.measure import READ, Timed

KERNEL = "kernel"
HEAD = ("page", "context", "who", "µs", "its captures", "÷ read", "÷ kernel", "not FP64 in fp16")


def text(results: Sequence[tuple[Shape, list[Timed]]]) -> str:
    """One line per shape and contender."""
    lines = [HEAD, *(_line(shape, one, timed) for shape, timed in results for one in timed)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)


def legend(absent: Mapping[str, str]) -> list[str]:
    """What each peer's time holds, and why an absent one is absent."""
    there = [f"{name}: {peer.what}" for name, peer in catalogue.PEERS.items() if name not in absent]
    return [*there, *(f"{name}: not timed: {why}" for name, why in absent.items())]


def _line(shape: Shape, one: Timed, timed: Sequence[Timed]) -> tuple[str, ...]:
    key = (str(shape.page), str(shape.context), one.name)
    if one.samples is None:
        return (*key, "-", "-", "-", "-", one.why)
    low, high = one.samples.range_us
    wrong = "-" if one.disagreements is None else f"{one.disagreements} of {one.elements}"
    times = (f"{one.samples.median_us:.2f}", f"{low:.2f}-{high:.2f}")
    return (*key, *times, _over(one, timed, READ), _over(one, timed, KERNEL), wrong)


def _over(one: Timed, timed: Sequence[Timed], name: str) -> str:
    for other in timed:
        if other.name == name and other.samples is not None and one.samples is not None:
            return f"{one.samples.median_us / other.samples.median_us:.2f}"
    return "-"
