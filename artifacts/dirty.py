"""Which changed files keep a tree from being named by a revision."""

from __future__ import annotations

from pathlib import Path

from artifacts import git
from artifacts.places import PRODUCT

# A new file counts where code is picked up from; a stray note beside it does not. Python picks modules up
# from the root too, and one of a dependency's name would take its place.
CODE = (PRODUCT, "fixtures", "artifacts", "evidence", "benchmarks", "regression", "sanitizer")
MODULES = (".py", ".pyc", ".so", ".pth")


def files(root: Path, *, product: bool = True) -> tuple[str, ...]:
    """Changed tracked files anywhere, new files in code folders, and new modules; relative to `root`.

    With product=False those of kernels/ don't count: the candidate is then a clean export of a revision, and
    only the instrument can be dirty.
    """
    found = [path for status, path in git.changes(root) if status != "??" or _is_code(path)]
    return tuple(sorted(path for path in found if product or _folder(path) != PRODUCT))


def _is_code(path: str) -> bool:
    return _folder(path) in CODE or path.endswith(MODULES)


def _folder(path: str) -> str:
    return path.split("/", 1)[0]
