"""Which changed files keep a tree from being named by a revision."""

from __future__ import annotations

from pathlib import Path

from artifacts import git
from artifacts.places import PRODUCT

# A new file counts where code is picked up from; a stray note beside it does not.
CODE = (PRODUCT, "fixtures", "artifacts", "evidence", "benchmarks", "regression", "sanitizer", "premerge")


def files(root: Path, *, product: bool = True) -> tuple[str, ...]:
    """Changed tracked files anywhere, and new files in code folders, relative to `root`.

    With product=False those of kernels/ don't count: the candidate is then a clean export of a revision, and
    only the instrument can be dirty.
    """
    found = [path for status, path in git.changes(root) if status != "??" or _folder(path) in CODE]
    return tuple(sorted(path for path in found if product or _folder(path) != PRODUCT))


def _folder(path: str) -> str:
    return path.split("/", 1)[0]
