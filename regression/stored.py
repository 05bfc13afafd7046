"""The stored goldens of one architecture."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fixtures import golden
from fixtures.golden import Golden
from regression.replay import Play
from regression.target import Target


def reader(arch: str) -> Callable[[str], Golden | None]:
    """A function from a group's id to its golden or None. FixtureError when the file is damaged."""
    known = frozenset(golden.available(arch))
    return lambda group_id: golden.read(arch, group_id) if group_id in known else None


def write(target: Target, plays: Sequence[Play], *, reason: str, date: str) -> None:
    """Make these plays of a built kernel its architecture's goldens. ValueError if one lacks partials."""
    fresh = {play.result.id: play.fresh for play in plays}
    complete = {group_id: value for group_id, value in fresh.items() if value is not None}
    if len(complete) != len(plays):
        raise ValueError("a golden needs partials: replay all groups with them")
    golden.write(
        target.arch,
        complete,
        reason=reason,
        precision_version=target.extension.precision_version,
        provenance=_provenance(target, date),
    )


def revision(arch: str) -> str | None:
    """The commit whose clean sources gave the goldens of `arch`; None when that is not known."""
    found = golden.provenance(arch).get("revision")
    return found if isinstance(found, str) else None


def _provenance(target: Target, date: str) -> dict[str, str | None]:
    subject = target.subject
    return {
        "backend": subject.backend,
        "code_digest": subject.code_digest,
        "source_digest": subject.source_digest,
        "revision": None if subject.dirty else subject.revision,
        "date": date,
    }
