"""What a replay may claim of what it replayed, and whose fault it is when it can't start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
SMALL = "3x64-8k-00,6x256-8k-01"


def test_a_setting_that_this_processor_lacks_is_no_rejection(
    command: Command, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(artifact, tmp_path / "copy")  # a library reads the variable when it is loaded
    monkeypatch.setenv("GROUPED_ATTENTION_CPU", "foo")
    done = command("replay", "--artifact", copy, "--groups", SMALL)
    assert done.code == 5
    assert done.verdict.startswith(
        "verdict: unknown (bad-setting: GROUPED_ATTENTION_CPU=foo can't be used: choose"
    )


def test_a_library_of_no_known_commit_is_measured_but_never_admitted(
    command: Command, artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artifacts.claims.revision_of", lambda _digest, _stated: None)
    (library,) = artifact.glob("*.so")
    for option, path in (("--artifact", artifact), ("--library", library)):
        done = command("replay", option, path, "--groups", SMALL)
        assert done.code == 3
        assert done.verdict.startswith("verdict: undecided (no-revision: ")
        assert done.json["outcome"] == "pass" and done.json["artifact"]["revision"] is None


def test_a_foreign_library_is_admitted_by_its_hash_alone(
    command: Command, artifact: Path, tmp_path: Path
) -> None:
    (library,) = artifact.glob("*.so")
    foreign = shutil.copy(library, tmp_path / "foreign.so")
    done = command("replay", "--library", foreign, "--groups", SMALL)
    assert done.code == 0
    digest = done.json["artifact"]["sha256"][:12]
    assert f"admitted (same-bits: host sm_70 (foreign library, known by its hash {digest}):" in done.verdict


def test_edits_of_the_instrument_count_for_whatever_is_replayed(
    command: Command, artifact: Path, callables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artifacts.dirty.of_instrument", lambda _root=None: ("regression/judge.py",))
    (library,) = artifact.glob("*.so")
    foreign = shutil.copy(library, tmp_path / "foreign.so")
    function = f"{callables}:honest"
    for option, what in (("--artifact", artifact), ("--library", foreign), ("--callable", function)):
        done = command("replay", option, what, "--backend", "host", "--groups", SMALL)
        assert done.code == 3
        assert "undecided (dirty-tree: " in done.verdict and "regression/judge.py" in done.verdict


@pytest.mark.parametrize("option", ["--artifact", "--library"])
def test_a_path_to_nothing_says_how_to_make_something(command: Command, option: str, tmp_path: Path) -> None:
    done = command("replay", option, tmp_path / "none")
    assert done.code == 4
    assert "no-artifact" in done.verdict and "artifacts build --out" in done.verdict
