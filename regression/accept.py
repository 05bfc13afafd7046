"""Renewing goldens: only all of them, with the table of what got better and worse, and with a reason."""

from __future__ import annotations

import argparse
import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from evidence import places
from regression import changelog, judge, stored
from regression.changelog import Entry
from regression.judge import Judgement, Reason, Rule
from regression.replay import Play
from regression.results import GroupResult
from regression.target import Target

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"

REFUSALS: tuple[Rule, ...] = tuple(
    rule for rule in judge.FAILURES if rule[0] not in ("bits-differ", "partials-differ")
)


def complaint(options: argparse.Namespace, target: Target) -> str | None:
    """Why this command cannot accept, before anything runs; None when it can."""
    if not options.accept.split():
        return "--accept needs a reason: it goes into the changelog"
    if options.groups not in (None, "all") or options.no_partials:
        return "--accept renews all goldens: --groups all, with partials"
    if target.partials is None or target.subject.code_digest is None:
        return (
            "goldens come from a built kernel with its manifest, never from a callable or a foreign library"
        )
    return None


def decide(plays: Sequence[Play]) -> Judgement | None:
    """A refusal, when some group must not become a golden; admitted when no bit changed; None to go ahead."""
    results = [play.result for play in plays]
    reasons = judge.broken(REFUSALS, results)
    missing = [play.result.id for play in plays if play.fresh is None]
    if missing:
        reasons += (
            Reason(code="partials-missing", text=f"no partials of {len(missing)} groups, first {missing[0]}"),
        )
    if reasons:
        return Judgement(word="rejected", reasons=reasons)
    if all(group.bitwise and group.partials == "ok" for group in results):
        text = f"no bit changed in {len(results)} groups: the goldens stay as they are"
        return Judgement(word="admitted", reasons=(Reason(code="nothing-to-accept", text=text),))
    return None


def renew(plays: Sequence[Play], target: Target, reason: str) -> Judgement:
    """Write the goldens and the changelog entry, both or neither."""
    with _alone():
        return _renew(plays, target, reason)


def _renew(plays: Sequence[Play], target: Target, reason: str) -> Judgement:
    entry = _entry([play.result for play in plays], target, " ".join(reason.split()))
    text = changelog.inserted(CHANGELOG.read_text(encoding="utf-8"), entry)
    temporary = changelog.staged(CHANGELOG, text)
    try:
        stored.write(target, plays, reason=entry.reason, date=entry.date)
        temporary.replace(CHANGELOG)
    finally:
        temporary.unlink(missing_ok=True)
    done = f"{'first goldens' if entry.first else 'renewed goldens'} of {target.arch}, {len(plays)} groups"
    return Judgement(word="admitted", reasons=(Reason(code="accepted", text=f"{done}; commit them"),))


@contextmanager
def _alone() -> Iterator[None]:
    """Goldens of all architectures share a manifest and the changelog: one renewal at a time."""
    path = places.home() / "accept.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _entry(results: Sequence[GroupResult], target: Target, reason: str) -> Entry:
    digest = target.subject.code_digest or ""
    return Entry(
        reason=reason,
        arch=target.arch,
        kernel=f"{target.subject.backend} kernel with code_digest {digest[:16]}",
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        first=all(group.mismatching is None for group in results),
        results=results,
    )
