"""By which revision an artifact may be named, and what keeps it from being admitted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from artifacts import builds, claims, dirty, sides
from artifacts.builds import Targets
from artifacts.claims import NO_REVISION, revision_of
from artifacts.dirty import of_instrument
from artifacts.sides import Side

Git = Callable[..., str]
HOST = Targets(backends=("host",), architectures=("sm_70",))


def quiet(_: str) -> None:
    """No progress."""


@pytest.fixture(autouse=True)
def checkout(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The test's repository is the instrument's checkout, asked as it is."""
    for module in (claims, dirty):
        monkeypatch.setattr(module, "checkout", lambda: repository)
    monkeypatch.setattr(claims, "revision_of", revision_of)
    monkeypatch.setattr(dirty, "of_instrument", of_instrument)
    return repository


def built(repository: Path, revision: str = builds.WORKTREE) -> tuple[Side, Path]:
    """A side, and the store's folder of its library."""
    side = builds.candidate(revision, HOST, root=repository, progress=quiet)
    directory = side.binaries[0].directory
    assert directory is not None
    return side, directory


def edit(repository: Path) -> None:
    (repository / "kernels" / "include" / "answer.h").write_text("#define ANSWER 1\n")


def test_a_library_of_a_dirty_tree_is_never_admitted(repository: Path) -> None:
    edit(repository)
    _, directory = built(repository)
    for path in (directory, next(directory.glob("*.so"))):
        side = sides.from_path(path)
        assert (side.revision, side.dirty) == (None, (NO_REVISION,))


def test_it_is_named_once_its_sources_are_committed(repository: Path, git: Git) -> None:
    edit(repository)
    _, directory = built(repository)
    git(repository, "commit", "-q", "-am", "three")
    head = git(repository, "rev-parse", "HEAD")
    _, again = built(repository)
    assert again == directory, "the store knows sources, not commits"
    assert (sides.from_path(directory).revision, sides.from_path(directory).dirty) == (head, ())


def test_a_revision_without_these_sources_is_not_believed(repository: Path, git: Git) -> None:
    edit(repository)
    side, directory = built(repository)
    digest = side.binaries[0].source_digest
    assert digest is not None
    head = git(repository, "rev-parse", "HEAD")
    assert revision_of(digest, head) is None
    assert revision_of(digest, "f" * 40) == "f" * 40, "a commit that isn't here is taken at its word"
    assert revision_of(digest, None) is None
    assert sides.from_path(directory).dirty == (NO_REVISION,)


def test_without_git_a_library_is_named_by_what_came_with_it(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, directory = built(repository)
    edit(repository)
    nameless, unknown = built(repository)
    sides.copy_set(side, tmp_path / "set")
    sides.copy_set(replace(nameless, revision=side.revision), tmp_path / "dirty")
    monkeypatch.setattr(claims, "checkout", lambda: tmp_path)
    monkeypatch.setattr(dirty, "checkout", lambda: tmp_path)
    for path in (directory, tmp_path / "set", tmp_path / "set" / "host-sm_70"):
        assert (sides.from_path(path).revision, sides.from_path(path).dirty) == (side.revision, ())
    for path in (tmp_path / "dirty", tmp_path / "dirty" / "host-sm_70"):
        assert sides.from_path(path).dirty == ("kernels/include/answer.h",)
    assert sides.from_path(unknown).dirty == (NO_REVISION,)


def test_the_instruments_edits_count_for_whatever_is_measured(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side, directory = built(repository)
    sides.copy_set(side, tmp_path / "set")
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(b"library")
    monkeypatch.setattr("artifacts.foreign.target", lambda _path: ("host", "sm_70"))
    paths = (directory, tmp_path / "set", tmp_path / "set" / "host-sm_70", foreign)
    assert [sides.from_path(path).dirty for path in paths] == [()] * 4
    (repository / "regression").mkdir()
    (repository / "regression" / "judge.py").write_text("x = 1\n")
    assert [sides.from_path(path).dirty for path in paths] == [("regression/judge.py",)] * 4
    assert sides.from_path(foreign).revision is None


def test_a_set_from_before_the_python_layer_counted_still_opens(repository: Path, tmp_path: Path) -> None:
    side, _ = built(repository)
    sides.copy_set(side, tmp_path / "set")
    where = tmp_path / "set" / sides.SET_NAME
    value = json.loads(where.read_text())
    del value["binding"]
    where.write_text(json.dumps(value))
    assert sides.from_path(tmp_path / "set").revision == side.revision


def test_of_a_base_nothing_is_claimed(repository: Path) -> None:
    edit(repository)
    _, directory = built(repository)
    assert builds.base(str(directory), HOST, root=repository, progress=quiet).dirty == ()
