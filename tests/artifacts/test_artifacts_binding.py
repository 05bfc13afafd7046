"""The Python layer that belongs to a side: what changes its digest, and where a side has it from."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from artifacts import builds, sides
from artifacts.builds import Targets
from evidence import record
from grouped_attention.identity import binding_digest

HOST = Targets(backends=("host",), architectures=("sm_70",))


def quiet(_: str) -> None:
    """No progress."""


@pytest.fixture
def package(repository: Path, git: Callable[..., str]) -> Path:
    """A product package in the repository, committed."""
    folder = repository / "kernels" / "grouped_attention"
    folder.mkdir()
    for name in ("extension", "build"):
        (folder / f"{name}.py").write_text("x = 1\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "package")
    return folder


def test_what_calls_go_through_counts_and_what_builds_does_not(package: Path) -> None:
    before = binding_digest(package)
    (package / "build.py").write_text("x = 2\n")
    assert binding_digest(package) == before
    (package / "extension.py").write_text("x = 2\n")
    changed = binding_digest(package)
    (package / "new.py").write_text("")
    assert len({before, changed, binding_digest(package)}) == 3


def test_a_side_has_its_own_sources_layer(repository: Path, package: Path, tmp_path: Path) -> None:
    (package / "extension.py").write_text("x = 2\n")
    revision = builds.candidate("HEAD", HOST, root=repository, progress=quiet)
    worktree = builds.candidate(targets=HOST, root=repository, progress=quiet)
    assert worktree.binding == binding_digest(package) != revision.binding
    sides.copy_set(worktree, tmp_path / "set")
    assert sides.from_path(tmp_path / "set").binding == worktree.binding
    assert json.loads((tmp_path / "set" / sides.SET_NAME).read_text())["binding"] == worktree.binding


def test_a_library_is_called_through_this_checkout(repository: Path) -> None:
    side = builds.candidate("HEAD", HOST, root=repository, progress=quiet)
    assert side.binaries[0].directory is not None
    assert sides.from_path(side.binaries[0].directory).binding == binding_digest() == record._binding()
