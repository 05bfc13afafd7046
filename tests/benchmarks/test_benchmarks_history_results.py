"""What a history's result files say, its verdict, whose machine's they are, and the suites that fill them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from history_repo import MACHINE, ROOT

from benchmarks.history import command, machine_key, measure, results, runner, verdict
from benchmarks.history.results import ResultsError, Tally
from benchmarks.history.runner import Desk
from benchmarks.history.verdict import Outcome

INDEX = {"a.track": {"params": [["1", "2"]], "version": "v2"}, "b.track": {"params": [], "version": "v1"}}


def result_file(folder: Path, **rows: Any) -> Path:
    path = folder / "machine" / "0000-x.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ["result", "params", "version"]
    value = {
        "commit_hash": "0" * 40,
        "result_columns": columns,
        "results": {k.replace("_", "."): v for k, v in rows.items()},
    }
    path.write_text(json.dumps(value))
    return path


def test_a_tally_tells_measured_skipped_and_failed_apart(tmp_path: Path) -> None:
    found = results.read(
        result_file(tmp_path, a_track=[[1.5, math.nan], [["1", "2"]], "v2"], b_track=[None, [], "v1"])
    )
    tally = results.tally(found, INDEX)
    assert tally == Tally(measured=("a.track(1)",), skipped=("a.track(2)",), failed=("b.track()",))
    assert not tally.complete and not results.tally(None, INDEX).complete
    old = results.read(
        result_file(tmp_path, a_track=[[1.5, 2.5], [["1", "2"]], "v1"], b_track=[[3], [], "v1"])
    )
    assert results.tally(old, INDEX).failed == ("a.track(1)", "a.track(2)"), "another protocol's don't count"
    assert results.foreign(old, INDEX) == ["a.track"] and results.has_number(old, "b.track")
    (tmp_path / "machine" / "0000-x.json").write_text("{}")
    with pytest.raises(ResultsError, match="not a result file"):
        results.read(tmp_path / "machine" / "0000-x.json")


def outcome(**facts: Any) -> Outcome:
    return Outcome(
        commit="e" * 40,
        tally=Tally(**{k: v for k, v in facts.items() if k in ("measured", "skipped", "failed")}),
        **{k: v for k, v in facts.items() if k in ("status", "lost", "dirty")},
    )


@pytest.mark.parametrize(
    ("facts", "word", "code"),
    [
        ({"measured": ("a",)}, "admitted", "measured"),
        ({"measured": ("a",), "failed": ("b",), "status": 2}, "unknown", "results-missing"),
        ({"measured": ("a",), "lost": ("b",)}, "unknown", "results-missing"),
        ({"measured": ("a",), "status": 1}, "unknown", "results-missing"),
        ({"measured": ("a",), "status": 124}, "unknown", "results-missing"),
        ({"skipped": ("a",)}, "unknown", "nothing-measured"),
        ({"measured": ("a",), "dirty": ("x",)}, "undecided", "dirty-tree"),
    ],
)
def test_the_verdict(facts: dict[str, Any], word: str, code: str) -> None:
    found = verdict.conclude(
        [outcome(measured=("z",)), outcome(**facts)] if "skipped" not in facts else [outcome(**facts)]
    )
    assert (found.word, found.code) == (word, code)


def test_nothing_measured_is_unknown() -> None:
    assert verdict.conclude([]).word == "unknown"


class Torch:
    """A GPU as torch shows it."""

    def __init__(self, uuid: str) -> None:
        self.cuda = self
        self.uuid = uuid

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def get_device_properties(self, _device: int) -> Torch:
        return self


def test_machines_and_drivers_never_mix(monkeypatch: pytest.MonkeyPatch) -> None:
    def name(uuid: str, driver: str) -> str:
        gpus = [{"name": "NVIDIA H200", "uuid": f"GPU-{u}", "driver": driver} for u in ("aa", "bb")]
        seen = {"gpus": gpus, "gpu_note": "", "cpu": "CPU @ 2.0", "cores": 2}
        monkeypatch.setattr(machine_key.machine, "describe", lambda: seen)
        monkeypatch.setitem(__import__("sys").modules, "torch", Torch(uuid))
        return machine_key.describe()["machine"]

    names = {name("aa", "580.1"), name("bb", "580.1"), name("aa", "581.2")}
    assert len(names) == 3 and "NVIDIA_H200_GPU-aa_driver_580.1" in names
    with pytest.raises(RuntimeError, match="doesn't list the GPU cc"):
        name("cc", "580.1")


def test_artifacts_are_named_by_whole_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    side = {
        "artifacts": [
            {"directory": "folder", "library": "folder/x.so"},
            {"directory": None, "library": "y.so"},
        ]
    }
    one, other = command._absolute(side)["artifacts"]
    assert one["directory"] == str(tmp_path / "folder") and other["directory"] is None
    assert other["library"] == str(tmp_path / "y.so")


def test_suites_say_why_there_is_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'kernels'}")
    monkeypatch.setenv(measure.NOTES_VARIABLE, str(tmp_path / "notes"))
    side = {"failed": [{"backend": "cuda", "arch": "sm_70", "text": "error: here\nmore"}], "artifacts": []}
    (tmp_path / "side").write_text(json.dumps(side))
    monkeypatch.setenv(measure.SIDE_VARIABLE, str(tmp_path / "side"))
    measure.keep("one", lambda: 5)
    assert measure.kept() == 5
    measure.keep("two", lambda: measure.binary("cuda", "sm_90"))
    with pytest.raises(NotImplementedError, match="no-binary"):
        measure.kept()
    measure.keep("three", lambda: measure.binary("cuda", "sm_70"))
    with pytest.raises(measure.UnmeasuredError, match="build-failed: error: here"):
        measure.kept()
    with pytest.raises(measure.UnmeasuredError, match=r"exit status 2: .*invalid choice"):
        measure.command("benchmarks", "no-such-verb")
    measure.keep_each("four", ["sm_70", "sm_80"], lambda arch: measure.binary("cuda", arch))
    with pytest.raises(measure.UnmeasuredError, match="build-failed"):
        measure.kept("sm_70")
    with pytest.raises(NotImplementedError, match="no-binary"):
        measure.kept("sm_80")
    with pytest.raises(ZeroDivisionError):
        measure.keep("five", lambda: 1 / 0)
    notes = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    assert [note["suite"] for note in notes] == ["two", "three", "four sm_70", "four sm_80", "five"]
    assert notes[-1]["code"] == "machinery"


def test_the_real_suites_are_found_and_versioned_by_protocol(tmp_path: Path) -> None:
    from benchmarks.history import protocol

    desk = Desk(root=ROOT, work=tmp_path, results=tmp_path / "results")
    config = runner.configure(desk, {"dvcs": "named"})
    names = {runner.COMMIT: "a" * 40, runner.DATE_MS: "0"}
    words = ["--environment", "prepared:same", "--bench", "just-discover", "--machine", MACHINE["machine"]]
    runner._write_machine(desk, MACHINE)
    assert runner.call(desk, config, "run", *words, extra=names) == 0
    index = results.index(desk.results)
    versions = {name.split(".")[0]: entry["version"] for name, entry in index.items()}
    assert versions["static"] == protocol.STATIC and versions["replay"] == protocol.REPLAY
    assert {entry["version"] for name, entry in index.items() if name.startswith("latency")} == {
        protocol.LATENCY,
        protocol.HOST_CLOCK,
    }
    assert all(entry["type"] == "track" and "throughput" not in name for name, entry in index.items())
