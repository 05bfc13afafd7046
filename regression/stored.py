"""The stored goldens of one architecture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fixtures import golden
from fixtures.golden import Golden
from regression.replay import Play


def reader(arch: str) -> Callable[[str], Golden | None]:
    """A function from a group's id to its golden or None. FixtureError when the file is damaged."""
    known = frozenset(golden.available(arch))
    return lambda group_id: golden.read(arch, group_id) if group_id in known else None


def write(arch: str, plays: Sequence[Play], *, reason: str, precision_version: int) -> None:
    """Make these plays the goldens of `arch`. ValueError when one lacks partials."""
    fresh = {play.result.id: play.fresh for play in plays}
    complete = {group_id: value for group_id, value in fresh.items() if value is not None}
    if len(complete) != len(plays):
        raise ValueError("a golden needs partials: replay all groups with them")
    golden.write(arch, complete, reason=reason, precision_version=precision_version)
