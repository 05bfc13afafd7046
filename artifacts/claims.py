"""By which revision an artifact that came as a folder may be named, and what keeps it from being admitted."""

from __future__ import annotations

from pathlib import Path

from artifacts import dirty, export, git
from artifacts.errors import ArtifactsError
from artifacts.places import root as checkout
from grouped_attention import identity

NO_REVISION = "(sources without a revision)"


def revision_of(source_digest: str, stated: str | None, root: Path | None = None) -> str | None:
    """The commit whose kernels/ has this digest: the stated one, else HEAD; None where neither has.

    The store's folders are named by their sources alone, so a manifest's revision may be missing or another
    one of the same sources. A commit that can't be looked up here is taken at its word.
    """
    top = root or checkout()
    if not git.is_repository(top):
        return stated
    names = ["HEAD"] if stated is None else [stated, "HEAD"]
    known = [commit for name in names if (commit := git.commit(top, name)) is not None]
    found = next((commit for commit in known if _digest(top, commit) == source_digest), None)
    return stated if found is None and stated not in known else found


def doubts(revision: str | None, root: Path | None = None) -> tuple[str, ...]:
    """What differs from a commit when a library without sources is measured: the instrument, and its name."""
    nameless = () if revision is not None else (NO_REVISION,)
    return (*nameless, *dirty.of_instrument(root))


def _digest(root: Path, commit: str) -> str | None:
    try:
        with export.revision(root, commit) as source:
            return identity.source_digest(identity.read_sources(source))
    except ArtifactsError:
        return None  # that revision has no kernels/
