"""The CUDA bench on stand-ins for graphs and events: what it captures, replays, poisons and compares."""

from __future__ import annotations

import contextlib
import itertools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.abba import cuda, engine
from benchmarks.abba.cuda import CudaBench
from benchmarks.abba.decision import Rule
from benchmarks.abba.sampling import BASE, CANDIDATE
from benchmarks.abba.subjects import Contender
from benchmarks.latency import problem
from benchmarks.latency.problem import Shape
from evidence.record import Subject

SHAPE = Shape(rows=5, heads=6, head_dim=256, page=16, context=64)


class Gpu:
    """What a GPU would do: calls made while capturing are stored, a replay makes them and moves the clock."""

    def __init__(self, call_us: float = 7.0) -> None:
        self.now_us, self.call_us = 0.0, call_us
        self.capturing: list[Callable[[], None]] | None = None
        self.replays: list[int] = []

    def call(self, work: Callable[[], None]) -> None:
        """One launch."""
        if self.capturing is not None:
            self.capturing.append(work)
            return
        self.now_us += self.call_us
        work()

    def torch(self) -> Any:
        """Stands in for the module `torch` in `benchmarks.abba.cuda`."""
        gpu = self

        class Graph:
            def capture_begin(self) -> None:
                gpu.capturing = self.calls = []

            def capture_end(self) -> None:
                gpu.capturing = None

            def replay(self) -> None:
                gpu.replays.append(len(self.calls))
                for work in self.calls:
                    gpu.call(work)

        class Event:
            def __init__(self, *, enable_timing: bool) -> None:
                assert enable_timing

            def record(self) -> None:
                self.at_us = gpu.now_us

            def elapsed_time(self, end: Event) -> float:
                return (end.at_us - self.at_us) / 1e3

        stream = SimpleNamespace(wait_stream=lambda _: None, synchronize=lambda: None)
        properties = SimpleNamespace(name="NVIDIA H200", L2_cache_size=100_000)
        names = SimpleNamespace(
            CUDAGraph=Graph,
            Event=Event,
            Stream=lambda _: stream,
            stream=lambda _: contextlib.nullcontext(),
            current_stream=lambda _: stream,
            current_device=lambda: 0,
            get_device_properties=lambda _: properties,
        )
        return SimpleNamespace(cuda=names, device=lambda *_: torch.device("cpu"))


def contender(gpu: Gpu, side: str, *, writes: Callable[[], bool] = lambda: True) -> Contender:
    def attend(q: torch.Tensor, *_: torch.Tensor, out: torch.Tensor, **_scales: float) -> None:
        gpu.call(lambda: out.copy_(q) if writes() else None)  # type: ignore[arg-type,return-value]

    return Contender(label=side, subject=Subject(backend="cuda", arch="sm_90", sha256=side), attend=attend)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    made = Gpu()
    monkeypatch.setattr(cuda, "torch", made.torch())
    return made


def bench(gpu: Gpu, *, hot: bool = False, **candidate: Any) -> CudaBench:
    sides = {BASE: contender(gpu, BASE), CANDIDATE: contender(gpu, CANDIDATE, **candidate)}
    return CudaBench(sides, SHAPE, hot=hot)


def test_a_sample_rotates_through_all_inputs_and_is_long_enough(gpu: Gpu) -> None:
    made = bench(gpu)
    copies = problem.copies(SHAPE, 100_000)
    assert copies == 16
    assert made.launches % copies == 0 and made.launches * gpu.call_us >= cuda.LEAST_SAMPLE_US
    assert (made.launches - copies) * gpu.call_us < cuda.LEAST_SAMPLE_US


def test_hot_reads_one_input_again_and_again(gpu: Gpu) -> None:
    assert bench(gpu, hot=True).launches == 15, "7 µs each, 100 µs together"


def test_a_block_is_four_timed_replays_behind_an_untimed_one(gpu: Gpu) -> None:
    made = bench(gpu)
    one, other = made.capture(BASE), made.capture(CANDIDATE)
    gpu.replays.clear()
    legs = made.play([one, other, other, one], 1)
    assert gpu.replays == [made.launches] * 5
    assert [leg.side for leg in legs] == [BASE, CANDIDATE, CANDIDATE, BASE]
    assert all(leg.times_us == pytest.approx((gpu.call_us,)) and leg.wrong == 0 for leg in legs)


def test_a_graph_that_runs_nothing_is_found_out(gpu: Gpu) -> None:
    calls = itertools.count()
    made = bench(gpu, writes=lambda: next(calls) < 32)  # the eager calls write, no replay does
    found = engine.compare(made, Rule(comparisons=1), budget_s=0.1, source=random.Random(1))
    assert found.alarm is not None and found.alarm.code == "bits-differ" and found.rejects


def test_it_says_what_it_cannot_see(gpu: Gpu) -> None:
    made = bench(gpu)
    assert made.note == "" or "went unseen" in made.note
    assert made.loaded() > 0 and made.seconds() > 0 and made.state() is not None


def test_a_launch_that_fails_ends_the_comparison(gpu: Gpu) -> None:
    def fails() -> bool:
        raise RuntimeError("an illegal memory access was encountered")

    calls = itertools.count()
    made = bench(gpu, writes=lambda: next(calls) < 100 or fails())
    found = engine.compare(made, Rule(comparisons=1), budget_s=0.1, source=random.Random(1))
    assert found.alarm is not None and found.alarm.code == "kernel-failed" and found.word == "unknown"
