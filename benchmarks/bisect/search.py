"""git bisect in a clone that is thrown away: the checkout it was started from stays as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from artifacts import places
from artifacts.errors import ArtifactsError

CLONE_TIMEOUT_S, RUN_TIMEOUT_S = 300, 24 * 3600
OWN_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")


@dataclass(frozen=True, kw_only=True)
class Found:
    """The commits that may be the first bad one, oldest first: one when it is known. `status` is git's."""

    suspects: tuple[str, ...]
    status: int
    log: str


@contextmanager
def clone(root: Path) -> Iterator[Path]:
    """A bare clone that borrows the checkout's objects, in a temporary folder."""
    with TemporaryDirectory(prefix="kernelgate-bisect-") as folder:
        path = Path(folder) / "clone.git"
        done = _run("clone", "--quiet", "--bare", "--shared", str(root), str(path), timeout_s=CLONE_TIMEOUT_S)
        if done.returncode != 0:
            raise ArtifactsError("git-failed", f"git clone: {_last(done.stderr)}")
        yield path


def bisect(repository: Path, good: str, bad: str, settings: Path) -> Found:
    """Run the steps; ArtifactsError "git-failed" when git refuses the two ends."""
    started = _run(
        "-C", str(repository), "bisect", "start", "--no-checkout", bad, good, timeout_s=RUN_TIMEOUT_S
    )
    if started.returncode != 0:
        raise ArtifactsError("git-failed", f"git bisect start: {_last(started.stderr or started.stdout)}")
    step = [sys.executable, "-m", "benchmarks.bisect.step", str(settings)]
    done = _run("-C", str(repository), "bisect", "run", *step, timeout_s=RUN_TIMEOUT_S, quiet=False)
    log = git_text(repository, "bisect", "log")
    return Found(suspects=suspects(repository), status=done.returncode, log=log)


def suspects(repository: Path) -> tuple[str, ...]:
    """What lies between the newest good commits and the oldest bad one, that one included."""
    names = git_text(repository, "for-each-ref", "--format=%(refname)", "refs/bisect").split()
    good = [name for name in names if name.startswith("refs/bisect/good")]
    listed = git_text(repository, "rev-list", "--topo-order", "--reverse", "refs/bisect/bad", "--not", *good)
    return tuple(listed.split())


def distance(repository: Path, good: str, bad: str) -> int:
    """How many commits are suspected at first; ArtifactsError when good doesn't come before bad."""
    if _run("-C", str(repository), "merge-base", "--is-ancestor", good, bad, timeout_s=60).returncode != 0:
        raise ArtifactsError(
            "usage", f"{good[:12]} is no ancestor of {bad[:12]}: bisect needs a way between them"
        )
    return int(git_text(repository, "rev-list", "--count", f"{good}..{bad}"))


def git_text(repository: Path, *arguments: str) -> str:
    """Output of one question; ArtifactsError "git-failed"."""
    done = _run("-C", str(repository), *arguments, timeout_s=60)
    if done.returncode != 0:
        raise ArtifactsError("git-failed", f"git {arguments[0]}: {_last(done.stderr)}")
    return done.stdout.strip()


def environment() -> dict[str, str]:
    """The process's own, without git's variables; the steps run elsewhere, and must find our packages."""
    kept = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    paths = [str(places.root()), str(places.root() / places.PRODUCT), os.environ.get("PYTHONPATH")]
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _run(*arguments: str, timeout_s: int, quiet: bool = True) -> subprocess.CompletedProcess[str]:
    stream = subprocess.PIPE if quiet else None
    command = ["git", *arguments]
    try:
        return subprocess.run(
            command,
            stdout=stream,
            stderr=stream,
            text=True,
            timeout=timeout_s,
            env=environment(),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ArtifactsError("git-failed", f"git {arguments[0]}: {error}") from error


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]
