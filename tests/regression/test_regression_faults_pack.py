"""Built kernels that travel, and what `faults` says of options that choose nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fixtures import faults
from fixtures.faults import FaultError
from regression.faults import kernels
from regression.faults.gates import GATES, Built
from regression.faults.kernels import PackError, PlaceError, Workshop
from regression.faults.trials import Trial

CONFTEST_COMMAND = Any
REAL = "v-scale-ignored"


def trial(name: str) -> Trial:
    return Trial(fault=faults.find(name), backend="host", arch="sm_70", gates=(GATES["replay"],))


def test_what_travels_is_what_was_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact, control = tmp_path / "artifact", tmp_path / "control.cubin"
    artifact.mkdir()
    (artifact / "library.so").write_bytes(b"code")
    control.write_bytes(b"planted")
    monkeypatch.setattr(kernels, "_controls", lambda *_: control)
    built = Built(artifact=artifact, package=artifact, emulator=control, against=artifact)
    monkeypatch.setattr(Workshop, "faulty", lambda *_: built)
    monkeypatch.setattr(Workshop, "sound", lambda *_: built)
    workshop = Workshop(source=tmp_path, work=tmp_path, store=tmp_path)
    one = trial(REAL)
    folder = kernels.pack([one], workshop, tmp_path / "out", progress=lambda _text: None)
    there = kernels.unpack(folder, tmp_path / "there")
    found = there.faulty(one)
    assert (found.artifact / "library.so").read_bytes() == b"code"
    assert found.control is not None and found.control.read_bytes() == b"planted"
    assert found.emulator is not None and found.emulator.read_bytes() == b"planted"
    sound = there.sound(one)
    assert sound.artifact is not None and sound.against is not None
    assert sound.artifact.is_dir() and sound.against.is_dir()
    with pytest.raises(FaultError, match="not built there"):
        there.faulty(trial("k-scale-twice"))
    index = json.loads((folder / kernels.INDEX).read_text())
    index["faulty"][REAL]["patch"] = "0" * 64
    (folder / kernels.INDEX).write_text(json.dumps(index))
    with pytest.raises(FaultError, match="another patch"):
        kernels.unpack(folder, tmp_path / "again").faulty(one)
    with pytest.raises(PackError, match="holds no built faults"):
        kernels.unpack(tmp_path / "nowhere", tmp_path / "third")
    kernels.check_place(folder)
    archive = folder / kernels.ARCHIVE
    archive.write_bytes(archive.read_bytes()[:40])
    with pytest.raises(PackError, match="can't be unpacked"):
        kernels.unpack(folder, tmp_path / "fourth")
    (folder / kernels.INDEX).write_text("[]")
    with pytest.raises(PackError, match="no index"):
        kernels.unpack(folder, tmp_path / "fifth")


def test_a_pack_replaces_nothing_but_a_pack(command: CONFTEST_COMMAND, tmp_path: Path) -> None:
    kernels.check_place(tmp_path / "new")
    for name, content in ((kernels.INDEX, "{}"), (kernels.ARCHIVE, ""), ("notes", "")):
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        kernels.check_place(folder)
        (folder / name).write_text(content)
        with pytest.raises(PlaceError, match=f"holds {name}"):
            kernels.check_place(folder)
        assert (folder / name).read_text() == content
    with pytest.raises(PlaceError, match="no folder"):
        kernels.check_place(tmp_path / "notes" / "notes")
    done = command("faults", "--build-only", "--out", tmp_path / "notes", "--backend", "cuda")
    assert done.code == 2 and "choose a new folder" in done.verdict


def test_a_damaged_pack_is_named(command: CONFTEST_COMMAND, tmp_path: Path) -> None:
    (tmp_path / kernels.INDEX).write_text(
        json.dumps({"backend": "host", "arch": "sm_70", "sound": {}, "faulty": {}})
    )
    (tmp_path / kernels.ARCHIVE).write_bytes(bytes.fromhex("fd377a585a000004"))
    done = command("faults", "--built", tmp_path, "--backend", "host", "--arch", "sm_70", "--only", REAL)
    assert done.code == 5
    assert done.verdict.startswith(f"verdict: unknown (pack-unreadable: {tmp_path / kernels.ARCHIVE}")


@pytest.mark.parametrize("option", ["--jobs=0", "--jobs=x", "--clean=-5", "--clean=0", "--only=,"])
def test_numbers_and_names_that_choose_nothing_are_usage(command: CONFTEST_COMMAND, option: str) -> None:
    assert command("faults", "--backend", "host", "--arch", "sm_70", option).code == 2


def test_a_catalogue_without_faults_is_usage(command: CONFTEST_COMMAND, tmp_path: Path) -> None:
    for folder, words in ((tmp_path / "nowhere", "no such folder"), (tmp_path, "no fault is chosen")):
        done = command("faults", "--backend", "host", "--arch", "sm_70", "--catalogue", folder)
        assert done.code == 2 and words in done.verdict


def test_build_only_needs_a_place(command: CONFTEST_COMMAND) -> None:
    assert command("faults", "--build-only").code == 2
    assert command("faults", "--out", "somewhere").code == 2
    unknown = command("faults", "--only", "nothing-of-the-kind")
    assert unknown.code == 2 and "there are: aligned-query-assumed, " in unknown.verdict
