"""Which changed files keep a tree from being named by a revision."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from artifacts import git
from artifacts.places import PRODUCT
from artifacts.places import root as checkout

# A new file counts where code is picked up from; a stray note beside it does not. Python picks modules up
# from the root too, and one of a dependency's name would take its place.
CODE = (PRODUCT, "fixtures", "artifacts", "evidence", "benchmarks", "regression", "sanitizer")
MODULES = (".py", ".pyc", ".so", ".pth")
# Python's own cache isn't code that somebody wrote.
CACHE = "__pycache__"
PYTHON_LAYER = f"{PRODUCT}/grouped_attention"
LINK, SUBMODULE = "120000", "160000"


def files(root: Path, *, product: bool = True) -> tuple[str, ...]:
    """Changed tracked files anywhere, new files in code folders, and new modules; relative to `root`.

    With product=False those of kernels/ don't count, but for modules that would be imported from there: the
    candidate is then a clean export of a revision, and only the instrument can be dirty.
    """
    found = {path for status, path in git.changes(root) if status != "??" or _is_code(path)}
    if git.commit(root, "HEAD") is not None:
        # git status believes the index and the ignore files, which can be told to look away.
        head = git.tree(root)
        found |= {path for path, (mode, name) in head.items() if not _is_blob(root / path, mode, name)}
        found |= {path for path in _modules(root) if path not in head}
    return tuple(sorted(path for path in found if product or not _is_built(path)))


def of_instrument(root: Path | None = None) -> tuple[str, ...]:
    """What of the instrument differs from its commit; nothing where no repository can say."""
    top = root or checkout()
    if not git.is_repository(top) or git.commit(top, "HEAD") is None:
        return ()
    return files(top, product=False)


def _is_blob(path: Path, mode: str, name: str) -> bool:
    if mode == SUBMODULE:
        return True
    try:
        data = os.fsencode(path.readlink()) if mode == LINK else path.read_bytes()
    except OSError:
        return False
    kind = "sha1" if len(name) == 40 else "sha256"
    return hashlib.new(kind, b"blob %d\0" % len(data) + data).hexdigest() == name


def _modules(root: Path) -> Iterator[str]:
    """What Python may import of a checkout, less its caches. Its root and kernels/ are on Python's path."""
    found = [
        path for top in (root, root / PRODUCT) for form in ("*", "*/__init__.*") for path in top.glob(form)
    ]
    for folder in CODE:
        found.extend((root / (PYTHON_LAYER if folder == PRODUCT else folder)).rglob("*"))
    for path in found:
        # A link may lead to a package; what begins with a dot is never one.
        is_link = path.is_symlink() and not path.name.startswith(".")
        if (path.suffix in MODULES or is_link) and path.parent.name != CACHE:
            yield path.relative_to(root).as_posix()


def _is_built(path: str) -> bool:
    """True for the product's own files; a module beside its package would be the instrument's, too."""
    folder, *rest = path.split("/")
    beside = len(rest) == 1 or (len(rest) == 2 and rest[1].startswith("__init__."))
    own = rest[:1] == ["grouped_attention"] or not path.endswith(MODULES)
    return folder == PRODUCT and (own or not beside)


def _is_code(path: str) -> bool:
    return _folder(path) in CODE or path.endswith(MODULES)


def _folder(path: str) -> str:
    return path.split("/", 1)[0]
