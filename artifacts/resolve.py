"""What a candidate is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from artifacts import git
from artifacts.errors import ArtifactsError
from artifacts.places import root as checkout

MAIN = ("origin/main", "main")
# Only an artifact, a set of them, or a kernels/ folder counts: a revision may be called like any other.
FOLDER_MARKS = ("manifest.json", "built.json", "CMakeLists.txt")


@dataclass(frozen=True, kw_only=True)
class Base:
    """Exactly one of `revision` (a full commit hash) and `path` (artifact folder or library)."""

    how: str
    revision: str | None = None
    path: Path | None = None


@dataclass(frozen=True, kw_only=True)
class NoBase:
    """Why there is nothing to compare with: a code and a sentence with advice."""

    code: str
    text: str


def resolve(
    spec: str | None = None, *, root: Path | None = None, candidate: str = "HEAD", dirty: bool = False
) -> Base | NoBase:
    """The base for `candidate` (a revision): `spec` when given, else the merge base with main.

    When the candidate is main itself, and clean, its first parent stands in, lest it be compared with itself.
    Never raises: what can't be resolved is a NoBase.
    """
    top = root or checkout()
    try:
        return _explicit(spec, top) if spec is not None else _default(top, candidate, dirty)
    except ArtifactsError as error:
        return NoBase(code=error.code, text=error.text)


def _explicit(spec: str, root: Path) -> Base:
    path = Path(spec)
    if path.is_file() or any((path / name).is_file() for name in FOLDER_MARKS):
        return Base(how=f"given path {spec}", path=path)
    found = git.commit(root, spec) if git.is_repository(root) else None
    if found is None:
        raise ArtifactsError("bad-base", f"--base {spec}: {_obstacle(path)}, and no revision is called so")
    return Base(how=f"given revision {spec}", revision=found)


def _obstacle(path: Path) -> str:
    if not path.exists():
        return "no such file or folder"
    return f"a folder without {', '.join(FOLDER_MARKS[:-1])} or {FOLDER_MARKS[-1]}"


def _default(root: Path, candidate: str, dirty: bool) -> Base:
    head = git.commit(root, candidate)
    if head is None:
        raise ArtifactsError("no-commit", f"{candidate}: no such commit; commit first, or pass --base")
    main = next((name for name in MAIN if git.commit(root, name) is not None), None)
    if main is None:
        raise ArtifactsError(
            "no-main", "neither origin/main nor main is known here: fetch it, or pass --base REV"
        )
    found = git.merge_base(root, head, main)
    if found is None:
        raise _unrelated(root, main)
    return (
        _parent(root, head)
        if found == head and not dirty
        else Base(how=f"merge base with {main}", revision=found)
    )


def _parent(root: Path, head: str) -> Base:
    parent = git.commit(root, f"{head}^1")
    if parent is not None:
        return Base(how="first parent, as the candidate is main itself", revision=parent)
    if git.is_shallow(root):
        raise _shallow()
    raise ArtifactsError(
        "first-commit", "the candidate is the first commit: there is no base; pass --base to name one"
    )


def _unrelated(root: Path, main: str) -> ArtifactsError:
    if git.is_shallow(root):
        return _shallow()
    return ArtifactsError(
        "no-common-history", f"the candidate shares no history with {main}: pass --base REV"
    )


def _shallow() -> ArtifactsError:
    return ArtifactsError(
        "shallow-clone", "history was cut off at cloning: git fetch --unshallow origin main, or pass --base"
    )
