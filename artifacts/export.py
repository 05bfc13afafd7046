"""Clean copies of a kernels/ folder: what git has of a revision, or what the work tree holds, no more."""

from __future__ import annotations

import io
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from artifacts import git
from artifacts.errors import ArtifactsError
from artifacts.places import PRODUCT


@contextmanager
def revision(root: Path, name: str) -> Iterator[Path]:
    """kernels/ of one revision in a temporary folder; ArtifactsError "bad-revision" or "no-kernels"."""
    commit = git.commit(root, name)
    if commit is None:
        raise ArtifactsError("bad-revision", f"{name}: no such revision here")
    with TemporaryDirectory(prefix="kernelgate-export-") as folder:
        _unpack(root, commit, Path(folder))
        yield _checked(Path(folder) / PRODUCT, f"revision {name}")


@contextmanager
def worktree(root: Path) -> Iterator[Path]:
    """The work tree's tracked, and untracked but not ignored, files of kernels/ in a temporary folder."""
    names = git.files(root, PRODUCT)
    with TemporaryDirectory(prefix="kernelgate-export-") as folder:
        for name in names:
            target = Path(folder) / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / name, target)
        yield _checked(Path(folder) / PRODUCT, "the work tree")


def _unpack(root: Path, commit: str, folder: Path) -> None:
    try:
        archive = git.run(root, "archive", "--format=tar", commit, PRODUCT)
    except ArtifactsError as error:
        if error.code == "no-git":
            raise
        raise ArtifactsError("no-kernels", f"revision {commit[:12]} has no {PRODUCT}/ folder") from error
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def _checked(product: Path, what: str) -> Path:
    if not (product / "CMakeLists.txt").is_file():
        raise ArtifactsError("no-kernels", f"{what} has no {PRODUCT}/CMakeLists.txt")
    return product
