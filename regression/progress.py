"""A progress bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")
EVERY_S = 10.0


def bar(items: Iterable[T], *, total: int, title: str, console: Console) -> Iterator[T]:
    """Yield the items; a bar counts them when `console` is a terminal, else lines on stderr."""
    if not console.is_terminal:
        yield from _lines(items, total=total, title=title)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        yield from progress.track(items, total=total, description=title)


def ticker(title: str, console: Console) -> Callable[[int], None]:
    """To be told how much is done, of what has no known end: a line on stderr now and then."""
    start = time.monotonic()
    said = [start]

    def tick(done: int) -> None:
        now = time.monotonic()
        if now - said[0] >= EVERY_S:
            said[0] = now
            line = f"{title}: {done}, {now - start:.0f} s"
            print(line, file=sys.stderr, flush=True, end="\r" if console.is_terminal else "\n")

    return tick


def _lines(items: Iterable[T], *, total: int, title: str) -> Iterator[T]:
    start = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        now = time.monotonic()
        if now - last >= EVERY_S and done < total:
            print(f"{title}: {done} of {total}, {now - start:.0f} s", file=sys.stderr, flush=True)
            last = now
        yield item
