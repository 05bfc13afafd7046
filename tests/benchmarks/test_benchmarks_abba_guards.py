"""Every guard fires: on outputs, throttling, errors, loaded code, impossible times and too few samples."""

from __future__ import annotations

import _ctypes
import ctypes
import itertools
import random
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from simulated_machine import SimulatedMachine

from benchmarks.abba import engine, guards, loads, nvml, orders, outcome, roofline
from benchmarks.abba.decision import Rule
from benchmarks.abba.engine import Comparison
from benchmarks.abba.nvml import Monitor
from benchmarks.abba.outcome import Result
from benchmarks.abba.sampling import BASE, CANDIDATE, Leg, State
from benchmarks.latency.problem import Shape

RULE = Rule(comparisons=1)
SHAPE = Shape(rows=5, heads=6, head_dim=256, page=848, context=8192)


def compared(machine: SimulatedMachine, budget_s: float = 0.3) -> Comparison:
    return engine.compare(machine, RULE, budget_s=budget_s, source=random.Random(1))


def verdict(comparison: Comparison) -> tuple[str, str]:
    found = outcome.conclude([Result(shape=SHAPE, comparison=comparison)], is_host=False)
    return found.word, found.code


def test_nothing_fires_on_a_sound_machine() -> None:
    found = compared(SimulatedMachine(seed=1))
    assert found.alarm is None and all(one.valid for one in found.rounds)


def test_wrong_outputs_of_the_candidate_reject() -> None:
    found = compared(SimulatedMachine(seed=1, ratio=0.5, wrong={CANDIDATE: 3}))
    assert verdict(found) == ("rejected", "bits-differ")
    assert found.alarm is not None and "3 output elements of the candidate" in found.alarm.text


def test_wrong_outputs_of_the_base_are_unknown() -> None:
    assert verdict(compared(SimulatedMachine(seed=1, wrong={BASE: 1}))) == ("unknown", "base-bits-differ")


def test_a_throttled_block_is_void_and_the_rest_counts() -> None:
    found = compared(SimulatedMachine(seed=1, throttled_blocks=frozenset({30})))
    voids = [block for one in found.rounds for pair in one.pairs for block in pair.blocks if block.void]
    assert 1 <= len(voids) <= 2, "the state is read before and after a block"
    assert all(block not in pair.kept for one in found.rounds for pair in one.pairs for block in voids)
    assert verdict(found)[0] == "admitted"


def test_a_throttled_machine_is_unknown_never_same() -> None:
    found = compared(SimulatedMachine(seed=1, throttled_blocks=frozenset(range(10**5))))
    assert found.counted == ()
    assert verdict(found) == ("unknown", "too-few-samples")


def test_code_loaded_while_timing_voids_the_pair() -> None:
    pair = engine.measure(SimulatedMachine(seed=1, loads_at_block=3), orders.draw(random.Random(1), 2)[0])
    assert pair.void is not None and pair.void.startswith("loaded") and pair.kept == ()
    sound = engine.measure(SimulatedMachine(seed=1, loads_at_block=1), orders.draw(random.Random(1), 2)[0])
    assert sound.void is None, "what a warm-up block loads is what it is for"


def test_a_module_that_is_imported_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = loads.count()
    assert loads.count() == before
    monkeypatch.setitem(sys.modules, "a_module_of_this_test", ModuleType("a_module_of_this_test"))
    assert loads.count() == before + 1


def test_a_library_that_is_loaded_is_noticed(tmp_path: Path) -> None:
    copied = shutil.copy(_ctypes.__file__, tmp_path / "copied.so")
    before = loads.count()
    ctypes.CDLL(str(copied))
    assert loads.count() == before + 1


def test_a_time_below_the_roofline_is_an_error() -> None:
    found = compared(SimulatedMachine(seed=1, floor_us=25.0))
    assert verdict(found) == ("unknown", "below-roofline")


def test_an_error_of_the_device_ends_it() -> None:
    found = compared(SimulatedMachine(seed=1, errors_at_block=40))
    assert verdict(found) == ("unknown", "gpu-error")
    assert found.rounds, "what was sampled before is kept"


def test_a_rejection_outweighs_another_alarm() -> None:
    rejecting = compared(SimulatedMachine(seed=1, wrong={CANDIDATE: 1}))
    unknown = compared(SimulatedMachine(seed=1, floor_us=25.0))
    results = [Result(shape=SHAPE, comparison=one) for one in (unknown, rejecting)]
    assert outcome.conclude(results, is_host=False).word == "rejected"


def test_a_time_on_the_host_says_nothing_of_the_kernel() -> None:
    slow = Result(shape=SHAPE, comparison=compared(SimulatedMachine(seed=1, ratio=1.2)))
    found = outcome.conclude([slow], is_host=True)
    assert (found.word, found.code) == ("unknown", "host-clock")
    assert "finds rejected (slower" in found.text and "nothing of the kernel" in found.text


@pytest.mark.parametrize(("name", "expected"), [("NVIDIA H200", 4.8e12), ("Tesla V100-SXM2", 0.9e12)])
def test_peaks_by_name(name: str, expected: float) -> None:
    assert roofline.peak(SimpleNamespace(name=name)) == expected


def test_the_peak_that_the_driver_tells_goes_first() -> None:
    told = SimpleNamespace(name="NVIDIA H200", memory_clock_rate=3_201_000, memory_bus_width=6144)
    assert roofline.peak(told) == pytest.approx(4.917e12, rel=1e-3)
    assert roofline.peak(SimpleNamespace(name="of tomorrow")) == roofline.UNKNOWN_PEAK


def test_the_floor_is_below_what_was_ever_measured() -> None:
    cold = roofline.floor_us(2 * 262144 * 256, 4.8e12, hot=False)
    assert cold == pytest.approx(27.96, rel=1e-3)
    assert roofline.floor_us(2 * 65536 * 256, 4.8e12, hot=True) < 2 * 65536 * 256 / 5.6e12 * 1e6


class FakeNvml:
    """The parts of pynvml that the monitor uses."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0
    nvmlEventTypeXidCriticalError = 8  # noqa: N815

    class NVMLError(Exception):
        pass

    def __init__(self, *, reasons: int = 0, xids: int = 0, ecc: int = 0, is_there: bool = True) -> None:
        self.reasons, self.xids, self.ecc, self.is_there = reasons, xids, ecc, is_there

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetHandleByPciBusId": "the device",
            "nvmlDeviceGetClockInfo": 1980,
            "nvmlDeviceGetTemperature": 40,
            "nvmlDeviceGetCurrentClocksThrottleReasons": self.reasons,
            "nvmlDeviceGetTotalEccErrors": self.ecc,
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=-1)],
        }
        return lambda *_: answers.get(name)

    def nvmlInit(self) -> None:  # noqa: N802
        if not self.is_there:
            raise self.NVMLError("driver not loaded")

    def nvmlEventSetWait_v2(self, _events: object, _timeout_ms: int) -> None:  # noqa: N802
        if self.xids == 0:
            raise self.NVMLError("timeout")
        self.xids -= 1

    def nvmlEventSetCreate(self) -> object:  # noqa: N802
        return object()


def test_nvml_tells_the_state() -> None:
    state = Monitor("0000:01:00.0", FakeNvml(reasons=0x1 | 0x4 | 0x40)).state()
    assert state.throttle == ("software power cap", "hardware thermal slowdown")
    assert (state.sm_mhz, state.temperature_c, state.errors, state.processes) == (1980, 40, 0, 1)


def test_an_idle_gpu_is_not_throttled() -> None:
    assert Monitor("0000:01:00.0", FakeNvml(reasons=0x1 | 0x2)).state().throttle == ()


def test_xid_events_and_memory_errors_count() -> None:
    library = FakeNvml(xids=2, ecc=1)
    ticks = itertools.count(step=nvml.SELDOM_S / 2)
    monitor = Monitor("0000:01:00.0", library, clock=lambda: next(ticks))
    before = monitor.state()
    assert before.errors == 3
    library.xids = 1
    assert monitor.state() == before, "errors are asked for seldom"
    with pytest.raises(guards.AlarmError, match="gpu-error"):
        guards.void(before, monitor.state())


def test_without_nvml_nothing_is_seen_and_that_is_said() -> None:
    monitor = Monitor("0000:01:00.0", FakeNvml(is_there=False))
    assert monitor.state() == State()
    assert "went unseen" in monitor.note


def test_the_fastest_replay_counts_for_the_floor() -> None:
    legs = [Leg(side=BASE, times_us=(20.0, 0.5))]
    with pytest.raises(guards.AlarmError, match="below-roofline"):
        guards.check(legs, 1.0)


def test_outputs_left_as_they_were_are_found() -> None:
    from benchmarks.abba.workload import Workload

    truth = torch.zeros(4, dtype=torch.int16)
    work = Workload(outputs=truth.clone(), calls={}, truth={BASE: truth})
    assert int(work.wrong(BASE)) == 0
    work.poison()
    assert int(work.wrong(BASE)) == 4, "a replay that wrote nothing leaves the poison"
