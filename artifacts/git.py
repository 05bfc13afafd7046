"""The few questions that are asked of git. Never writes to the repository, never takes its locks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from artifacts.errors import ArtifactsError

TIMEOUT_S = 60
REMEDY = (
    "work in a clone with git installed, or pass --base FOLDER; what is measured without is never admitted"
)


def run(root: Path, *arguments: str) -> bytes:
    """Output of one git command; ArtifactsError "no-git" without git or repository, else "git-failed"."""
    obstacle = _obstacle(root)
    if obstacle is not None:
        raise ArtifactsError("no-git", f"{obstacle}: {REMEDY}")
    done = _call(root, *arguments)
    if done.returncode != 0:
        raise ArtifactsError("git-failed", f"git {arguments[0]} failed: {_last_line(done.stderr)}")
    return done.stdout


def is_repository(root: Path) -> bool:
    """True when `root` is the top of a repository that git can read."""
    return _obstacle(root) is None


def commit(root: Path, revision: str) -> str | None:
    """Full hash of a revision's commit, None when there is no such thing."""
    try:
        found = run(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except ArtifactsError as error:
        if error.code == "no-git":
            raise
        return None
    return found.decode().strip()


def merge_base(root: Path, one: str, other: str) -> str | None:
    """The best common ancestor, None when none is known here."""
    try:
        return run(root, "merge-base", one, other).decode().strip()
    except ArtifactsError as error:
        if error.code == "no-git":
            raise
        return None


def is_shallow(root: Path) -> bool:
    """True when history was cut off at cloning."""
    return run(root, "rev-parse", "--is-shallow-repository").strip() == b"true"


def files(root: Path, folder: str) -> tuple[str, ...]:
    """Tracked, and untracked but not ignored, files of the work tree below `folder` that exist."""
    out = run(
        root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", folder
    )
    names = [name for name in os.fsdecode(out).split("\0") if name]
    return tuple(sorted(name for name in names if (root / name).is_file()))


def changes(root: Path) -> tuple[tuple[str, str], ...]:
    """(status, path) of every file that differs from HEAD, untracked ones included as "??"."""
    out = run(root, "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
    entries = [entry for entry in os.fsdecode(out).split("\0") if entry]
    return tuple((entry[:2], entry[3:]) for entry in entries)


def tree(root: Path) -> dict[str, tuple[str, str]]:
    """Path → (mode, object name) of every file of HEAD."""
    out = os.fsdecode(run(root, "ls-tree", "-r", "-z", "--full-tree", "HEAD"))
    entries = (entry.split("\t", 1) for entry in out.split("\0") if entry)
    return {path: (words.split()[0], words.split()[2]) for words, path in entries}


def text(root: Path, revision: str, path: str) -> str:
    """A file of a revision, "" where that revision or file isn't known."""
    try:
        return run(root, "show", f"{revision}:{path}").decode(errors="replace")
    except ArtifactsError:
        return ""


def _obstacle(root: Path) -> str | None:
    """Why `root` can't be asked about as a repository, in git's own words where it has some."""
    try:
        done = _call(root, "rev-parse", "--show-toplevel")
    except ArtifactsError as error:
        return error.text
    if done.returncode != 0:
        return f"{root} is not a git repository that can be read ({_last_line(done.stderr)})"
    top = Path(os.fsdecode(done.stdout).rstrip("\n"))
    return None if top.resolve() == root.resolve() else f"{root} is only a folder of the repository {top}"


def _last_line(text: bytes) -> str:
    return (text.decode(errors="replace").strip().splitlines() or ["no message"])[-1]


def _call(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_REPLACE_OBJECTS": "1", "LC_ALL": "C"}
    # Set by git when it runs a hook: they would point these questions at another repository.
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    command = ["git", "-C", str(root), *arguments]
    try:
        return subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, env=environment, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ArtifactsError("no-git", f"git can't be run: {error}") from error
