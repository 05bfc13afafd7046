"""The store of built libraries: where it is, its locks, and the logs of failed and interrupted builds."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grouped_attention.manifest import LOG_NAME

TAIL_LINES = 30


def default_store() -> Path:
    """$GROUPED_ATTENTION_STORE, else artifacts/ in $KERNELGATE_HOME or .kernelgate, else a cache."""
    named, home = (os.environ.get(name) for name in ("GROUPED_ATTENTION_STORE", "KERNELGATE_HOME"))
    if named:
        return Path(named).absolute()
    if home:
        return Path(home).absolute() / "artifacts"
    root = Path(__file__).resolve().parents[2]
    if (root / "kernels" / "CMakeLists.txt").is_file():
        return root / ".kernelgate" / "artifacts"
    return Path.home() / ".cache" / "grouped_attention"


@contextmanager
def locked(root: Path, digest: str) -> Iterator[None]:
    """Hold the lock of one digest; waits while another process builds it."""
    locks = root / ".locks"
    locks.mkdir(parents=True, exist_ok=True)
    with (locks / digest).open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)  # released by the kernel even when this process is killed
        yield


def keep_interrupted_logs(root: Path, digest: str) -> None:
    """Clear the work folders of killed builds of this digest (call under its lock); their logs stay."""
    for work in (root / ".work").glob(f"{digest[:16]}-*"):
        keep_log(root, digest, work / LOG_NAME, "interrupted")
        shutil.rmtree(work, ignore_errors=True)


def keep_log(root: Path, digest: str, log: Path, why: str) -> Path:
    """Move a log to the store's .failed folder under a name of its own."""
    stamp = f"{time.strftime('%Y%m%dT%H%M%S')}-{time.monotonic_ns()}"
    kept = root / ".failed" / f"{digest[:16]}-{why}-{stamp}.log"
    kept.parent.mkdir(exist_ok=True)
    if log.exists():
        log.rename(kept)
    return kept


def tail(log: Path) -> str:
    """The last lines of a log."""
    if not log.exists():
        return ""
    return "\n".join(log.read_text(errors="replace").splitlines()[-TAIL_LINES:])


def fsync(path: Path) -> None:
    """Force a file or a folder's entries to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
