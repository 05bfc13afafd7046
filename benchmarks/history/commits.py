"""Which commits: their names, dates, and whether history still reaches them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from artifacts import git
from artifacts.errors import ArtifactsError
from artifacts.places import PRODUCT

UNKNOWN_DATE_MS = 0
MAIN = "main"


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A full hash; `date_ms` since 1970, 0 where there is no git to ask."""

    name: str
    date_ms: int = UNKNOWN_DATE_MS


def last(root: Path, count: int, revision: str = "HEAD") -> list[Commit]:
    """The last commits that changed the product, oldest first: others have the results of their parent."""
    lines = git.run(
        root, "log", "--first-parent", f"--max-count={count}", "--format=%H %ct", revision, "--", PRODUCT
    )
    return [_parse(line) for line in reversed(lines.decode().splitlines())]


def named(root: Path, revision: str) -> Commit:
    """One commit; ArtifactsError "bad-revision" when it is not here."""
    commit = git.commit(root, revision)
    if commit is None:
        raise ArtifactsError("bad-revision", f"{revision}: no such revision here")
    return _parse(git.run(root, "log", "--max-count=1", "--format=%H %ct", commit).decode().strip())


def branch(root: Path) -> str:
    """The branch whose history is drawn: main where there is one, else what is checked out."""
    return MAIN if git.commit(root, f"refs/heads/{MAIN}") else "HEAD"


def drawn(root: Path) -> dict[str, int]:
    """Date in ms of every commit that a graph can hold: first parents of the branch, reachable by a ref."""
    lines = git.run(root, "log", "--first-parent", "--format=%H %ct", branch(root)).decode().splitlines()
    reachable = set(git.run(root, "rev-list", "--all").decode().split())
    found = map(_parse, lines)
    return {commit.name: commit.date_ms for commit in found if commit.name in reachable}


def whereabouts(root: Path, name: str) -> str:
    """Why a commit isn't drawn."""
    if git.commit(root, name) is None:
        return "no such commit here: rebased away, or never fetched"
    if git.run(root, "for-each-ref", "--contains", name, "--count=1").strip():
        return "not on the branch that is drawn"
    return "no branch or tag reaches it: rebased away"


def _parse(line: str) -> Commit:
    name, seconds = line.split()
    return Commit(name=name, date_ms=1000 * int(seconds))
