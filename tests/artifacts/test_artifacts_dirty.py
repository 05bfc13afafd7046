"""What keeps a tree from being named by a revision, whatever git was told to overlook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts import dirty
from artifacts.dirty import of_instrument

Git = Callable[..., str]


def test_clean_tree_has_no_dirty_files(repository: Path) -> None:
    assert dirty.files(repository) == ()
    (repository / ".kernelgate").mkdir()
    (repository / ".kernelgate" / "x").write_text("ignored")
    assert dirty.files(repository) == ()


def test_dirty_files_are_named(repository: Path, git: Git) -> None:
    (repository / "note.txt").write_text("changed")
    (repository / "kernels" / "src" / "new file.cc").write_text("new")
    (repository / "scratch.txt").write_text("a stray note")
    (repository / "safetensors.py").write_text("raise SystemExit(0)")
    (repository / "kernels" / "src" / "host.cc").unlink()
    git(repository, "add", "note.txt")
    expected = ("kernels/src/host.cc", "kernels/src/new file.cc", "note.txt", "safetensors.py")
    assert dirty.files(repository) == expected
    assert dirty.files(repository, product=False) == ("note.txt", "safetensors.py")


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_edits_that_the_index_overlooks_are_named(flag: str, repository: Path, git: Git) -> None:
    path = repository / "kernels" / "include" / "answer.h"
    git(repository, "update-index", flag, str(path))
    assert dirty.files(repository) == ()
    path.write_text("#define ANSWER 1\n")
    assert git(repository, "status", "--porcelain") == "", "or the test shows nothing"
    assert dirty.files(repository) == ("kernels/include/answer.h",)


def test_edits_that_a_filter_undoes_are_named(repository: Path, git: Git) -> None:
    git(repository, "config", "filter.hide.clean", "git cat-file blob HEAD:note.txt")
    (repository / ".git" / "info" / "attributes").write_text("note.txt filter=hide\n")
    (repository / "note.txt").write_text("other\n")
    git(repository, "add", "-A")
    assert git(repository, "status", "--porcelain") == "", "or the test shows nothing"
    assert dirty.files(repository) == ("note.txt",)


def test_a_replaced_commit_is_not_believed(repository: Path, git: Git) -> None:
    head = git(repository, "rev-parse", "HEAD")
    (repository / "note.txt").write_text("other\n")
    git(repository, "add", "-A")
    other = git(repository, "commit-tree", "-m", "other", git(repository, "write-tree"))
    git(repository, "replace", head, other)
    assert git(repository, "status", "--porcelain") == "", "or the test shows nothing"
    assert dirty.files(repository) == ("note.txt",)


IMPORTED = (
    "regression/extra.py",
    "torch.py",
    "numpy/__init__.py",
    "numpy/__init__.abi3.so",
    "kernels/sitecustomize.py",
    "kernels/numpy/__init__.pyc",
    "kernels/grouped_attention/extra.py",
)


@pytest.mark.parametrize("name", IMPORTED)
def test_modules_that_git_ignores_are_named(name: str, repository: Path, git: Git) -> None:
    (repository / name).parent.mkdir(parents=True, exist_ok=True)
    (repository / name).write_text("")
    cache = repository / "regression" / "__pycache__" / "old.pyc"
    cache.parent.mkdir(parents=True)
    cache.write_bytes(b"")
    (repository / ".git" / "info" / "exclude").write_text("*.py\n*.pyc\n*.so\n__pycache__\n")
    assert git(repository, "status", "--porcelain") == "", "or the test shows nothing"
    assert dirty.files(repository) == (name,)


def test_a_link_to_a_package_is_named(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "bits").mkdir()
    (repository / "regression").mkdir(exist_ok=True)
    (repository / "regression" / "bits").symlink_to(tmp_path / "bits")
    (repository / ".venv").symlink_to(tmp_path)
    (repository / ".git" / "info" / "exclude").write_text("bits\n.venv\n")
    assert dirty.files(repository) == ("regression/bits",)


def test_links_are_compared_by_where_they_lead(repository: Path, git: Git) -> None:
    (repository / "link").symlink_to("note.txt")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "link")
    assert dirty.files(repository) == ()
    (repository / "link").unlink()
    (repository / "link").symlink_to("elsewhere")
    assert dirty.files(repository) == ("link",)


def test_of_the_instrument_the_kernels_are_no_part(repository: Path, tmp_path: Path) -> None:
    (repository / "kernels" / "src" / "host.cc").write_text("")
    assert of_instrument(repository) == ()
    stray = repository / "kernels" / "sitecustomize.py"
    stray.write_text("")
    assert of_instrument(repository) == ("kernels/sitecustomize.py",), "kernels/ is on Python's path"
    stray.unlink()
    (repository / "note.txt").write_text("other\n")
    assert of_instrument(repository) == ("note.txt",)
    assert of_instrument(tmp_path / "no repository") == ()
