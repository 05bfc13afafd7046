"""The timed tests: what they check of what they timed, their thresholds, and the verdict over them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from artifacts import Binary, Side
from artifacts.errors import ArtifactsError
from benchmarks.bench import ending, saved, subject
from benchmarks.bench.ending import Timed
from benchmarks.bench.saved import SavedError, Threshold
from evidence import store
from evidence.record import Subject
from fixtures import golden
from grouped_attention.build import default_store

ROOT = Path(__file__).resolve().parents[2]
KEY = {"test": "t", "machine": "m"}


@pytest.mark.parametrize("text", ["median:5", "median", "p99:5%", "median:-5%", "median:5%%"])
def test_a_threshold_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(SavedError, match="not like median:5%"):
        Threshold.parse(text)


def keep(folder: Path, number: int, median: float, *, passed: bool = True, key: dict[str, str] = KEY) -> None:
    folder.mkdir(exist_ok=True)
    entry = {"stats": {"median": median, "min": median / 2}, "extra_info": {"key": key, "passed": passed}}
    (folder / f"{number:04}_run.json").write_text(json.dumps({"benchmarks": [entry]}))


def held(folder: Path, median: float, limit: str = "median:5%", run: str = "") -> saved.Comparison:
    return saved.compare(folder, KEY, {"median": median, "min": median / 2}, Threshold.parse(limit), run)


def test_each_test_is_held_against_the_newest_run_that_passed(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    assert held(runs, 1.0).word == "unknown", "nothing to compare with is no pass"
    keep(runs, 1, 1.0)
    keep(runs, 2, 1.2, passed=False)
    keep(runs, 3, 9.0, key={**KEY, "machine": "another driver"})
    assert (held(runs, 1.04).word, held(runs, 1.06).word) == ("within", "slower")
    assert held(runs, 1.06).source == "0001_run" and "+6.0%" in held(runs, 1.06).text()
    assert held(runs, 1.06, "median:7%").word == "within"
    keep(runs, 4, 1.5)
    assert (held(runs, 1.5).word, held(runs, 1.5, run="0001").word) == ("within", "slower")
    with pytest.raises(SavedError, match="holds no run 0009"):
        held(runs, 1.0, run="0009")
    (runs / "0005_run.json").write_text("{")
    with pytest.raises(SavedError, match="0005"):
        held(runs, 1.0)


def timed(word: str, backend: str = "cuda") -> Timed:
    subject_of = Subject(backend=backend, arch="sm_90", sha256="0" * 64)
    return Timed(name="t", word=word, text=f"t: {word}", subject=subject_of)


@pytest.mark.parametrize(
    ("found", "status", "word", "code"),
    [
        ([timed("within")], 0, "admitted", "no-slower"),
        ([timed("within"), timed("slower")], 1, "rejected", "slower"),
        ([timed("slower", "host")], 1, "rejected", "slower"),
        ([timed("slower"), timed("bits-differ")], 1, "rejected", "bits-differ"),
        ([timed("unknown"), timed("within")], 0, "undecided", "no-reference"),
        ([timed("within", "host")], 0, "unknown", "host-clock"),
        ([timed("within")], 1, "unknown", "nothing-measured"),
        ([], 0, "unknown", "nothing-measured"),
        ([], 5, "unknown", "nothing-measured"),
    ],
)
def test_the_verdict(found: list[Timed], status: int, word: str, code: str) -> None:
    said, reason = ending.conclude(found, status)
    assert (said, reason.split(":")[0]) == (word, code)


class StandIn:
    """A library that writes the golden, or leaves the last element as it was."""

    backend, arch = "host", "sm_70"

    def __init__(self, *, lazy: bool) -> None:
        self.lazy, self.calls = lazy, 0
        self.bits = golden.read("sm_70", subject.group(8192).id).out

    def workspace(self, kind: str, **sizes: Any) -> None:
        assert kind == subject.OP and sizes["head_dim"] == 256

    def grouped_e4m3_fp32(self, *_inputs: Any, out: torch.Tensor, **_options: Any) -> None:
        self.calls += 1
        end = out.numel() - self.lazy
        out.view(-1)[:end] = self.bits.view(-1)[:end]


def test_what_was_timed_must_be_the_golden_after_poisoning() -> None:
    right = subject.make(StandIn(lazy=False), 8192)
    right.poison()
    assert right.wrong() == right.expected.numel(), "every element is poisoned"
    right.run()
    assert right.wrong() == 0 and right.launches == 1
    lazy = subject.make(StandIn(lazy=True), 8192)
    lazy.poison()
    lazy.run()
    assert lazy.wrong() == 1


def test_every_context_has_a_stored_group_of_the_timed_shape() -> None:
    for context in subject.CONTEXTS:
        found = subject.group(context)
        assert (found.context, found.rows, found.heads, found.head_dim) == (context, 5, 6, 256)


def test_a_folder_without_a_fitting_library_is_refused() -> None:
    binary = Binary(library=Path("x"), backend="cuda", arch="sm_90", sha256="0", toolchain={})
    side = Side(origin="folder", binaries=(binary,))
    assert ending.fitting(side, "cuda") is binary
    with pytest.raises(ArtifactsError, match="holds no host library"):
        ending.fitting(replace(side), "host")


def bench(folder: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "benchmarks/test_latency.py", "--backend", "host"]
    save = [
        "-k",
        "8192",
        f"--benchmark-storage=file://{folder / 'runs'}",
        "--benchmark-autosave",
        "-p",
        "no:cacheprovider",
    ]
    places = {"KERNELGATE_HOME": str(folder / "home"), "GROUPED_ATTENTION_STORE": str(default_store())}
    # pytest-benchmark times nothing in what it takes for a worker of xdist.
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    environment = {**own, **places, "PYTHONPATH": f"{ROOT}:{ROOT / 'kernels'}"}
    done = subprocess.run(
        [*command, *save, *options], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_a_slower_run_fails_its_test_and_is_no_reference(tmp_path: Path) -> None:
    code, text = bench(tmp_path)
    assert code == 4 and text.splitlines()[-1].startswith("verdict: unknown (host-clock: 1 tests timed")
    assert "benchmark 'context 8192': 1 tests" in text
    (first,) = (tmp_path / "runs").rglob("*.json")
    (kept,) = store.load(tmp_path / "home" / "records").records
    assert (kept.kind, kept.outcome, kept.reasons[0].code) == ("bench", "unknown", "host-clock")
    assert len(kept.results["tests"][0]["times_s"]) == 30 and kept.artifact.arch == "sm_70"
    value = json.loads(first.read_text())
    (entry,) = value["benchmarks"]
    assert entry["extra_info"]["passed"] and "machine" in value["machine_info"]
    for name in ("min", "median"):
        entry["stats"][name] /= 1000  # as if this machine had been a thousand times as fast before
    first.write_text(json.dumps(value))
    for _ in range(2):
        code, text = bench(tmp_path)
        assert code == 1 and text.splitlines()[-1].startswith("verdict: rejected (slower: 1 of 1")
        assert "1 failed" in text and first.stem in text


def test_the_suites_own_tests_do_not_collect_the_timed_ones() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert settings["testpaths"] == ["tests"]
    assert not list((ROOT / "tests").rglob("test_latency.py"))
