"""A comparison's own record is what a verdict's requirement asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from simulated_machine import Noise, SimulatedMachine

from benchmarks import cli
from benchmarks.abba import command
from benchmarks.abba.command import Sides
from benchmarks.abba.subjects import Contender
from benchmarks.latency.problem import Shape
from evidence import findings, instrument, machine, policy, store
from evidence.findings import FAIL, INCONCLUSIVE, MISSING, PASS
from evidence.question import Question, Side
from evidence.record import Subject
from grouped_attention.identity import binding_digest

GPU = {"name": "NVIDIA H200", "uuid": "GPU-1", "driver": "580.1"}
REQUIREMENT = next(e for e in policy.POLICY if (e.kind, e.arch) == ("abba", "sm_90"))


def subject(code: str) -> Subject:
    return Subject(backend="cuda", arch="sm_90", sha256=f"file-{code}", code_digest=code)


def side(code: str) -> Side:
    return Side(subjects=(subject(code),), revision="r" * 40, binding=binding_digest())


@pytest.fixture
def compare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulated GPU in the place of this machine's, with two artifacts on it."""
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path))
    contenders = (Contender(label=c, subject=subject(c), attend=print) for c in ("old", "new"))
    sides = Sides(base=next(contenders), candidate=next(contenders), backend="cuda", arch="sm_90")
    monkeypatch.setattr(command, "resolve", lambda _options: sides)
    monkeypatch.setattr(machine, "gpus_seen", lambda: ([GPU], None))
    ticks = iter(range(10**9))
    monkeypatch.setattr(command.time, "perf_counter", lambda: 1e-6 * next(ticks))


def found_after(
    monkeypatch: pytest.MonkeyPatch,
    *options: str,
    ratio: float = 1.0,
    noise: float = 0.002,
    base: str = "old",
) -> str:
    def bench(_sides: object, shape: Shape, _source: object, *, hot: bool) -> SimulatedMachine:
        quiet = Noise(replay=noise / 4, instance=noise)
        return SimulatedMachine(seed=shape.context + hot, ratio=ratio, noise=quiet)

    monkeypatch.setattr(command, "bench", bench)
    cli.main(["abba", "--budget", "4s", *options])
    fresh = {"abba": instrument.of("abba").digest}
    asked = Question(candidate=side("new"), base=side(base), inputs="", instruments=fresh)
    return findings.find(REQUIREMENT, asked, store.load().records).state


@pytest.mark.usefixtures("compare")
@pytest.mark.parametrize(
    ("ratio", "noise", "state"),
    [(1.0, 0.002, PASS), (0.98, 0.002, PASS), (1.01, 0.002, FAIL), (1.0, 0.1, INCONCLUSIVE)],
)
def test_what_a_record_says(monkeypatch: pytest.MonkeyPatch, ratio: float, noise: float, state: str) -> None:
    assert found_after(monkeypatch, ratio=ratio, noise=noise) == state


@pytest.mark.usefixtures("compare")
def test_a_record_of_less_or_of_another_base_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found_after(monkeypatch, "--contexts", "8192") == MISSING
    assert found_after(monkeypatch, "--reject-above", "0.05") == MISSING
    assert found_after(monkeypatch, base="another") == MISSING
