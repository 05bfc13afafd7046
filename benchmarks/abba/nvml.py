"""The GPU's state by NVML: clocks, temperature, throttling, memory errors, other processes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

from benchmarks.abba.sampling import State

# Bits of nvmlClocksEventReasons that slow a running kernel. Idle and chosen application clocks don't void.
THROTTLES = {
    0x004: "software power cap",
    0x008: "hardware slowdown",
    0x020: "software thermal slowdown",
    0x040: "hardware thermal slowdown",
    0x080: "hardware power brake",
    0x200: "board limit",
    0x400: "reliability",
}


SELDOM_S = 0.05


class Monitor:
    """Reads one GPU. Without the package nvidia-ml-py it sees nothing, and `note` says so."""

    def __init__(
        self, pci_bus_id: str, library: Any = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.note = ""
        self._nvml = library if library is not None else _package()
        self._device: Any = None
        self._events: Any = None
        self._xids = 0
        self._clock = clock
        self._looked_s = -math.inf
        self._seldom: dict[str, int | None] = {}
        if self._nvml is None:
            self.note = "nvidia-ml-py is not installed: clocks, throttling and errors went unseen"
        else:
            self._open(pci_bus_id)

    def state(self) -> State:
        """Now; None for what this driver doesn't tell."""
        if self._device is None:
            return State()
        n, device = self._nvml, self._device
        return State(
            sm_mhz=self._asked(lambda: n.nvmlDeviceGetClockInfo(device, n.NVML_CLOCK_SM)),
            memory_mhz=self._asked(lambda: n.nvmlDeviceGetClockInfo(device, n.NVML_CLOCK_MEM)),
            temperature_c=self._asked(lambda: n.nvmlDeviceGetTemperature(device, n.NVML_TEMPERATURE_GPU)),
            throttle=throttles(self._asked(lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(device)) or 0),
            **self._slow_answers(),
        )

    def _slow_answers(self) -> dict[str, int | None]:
        """Errors and processes, which take NVML milliseconds: not asked again within SELDOM_S."""
        if self._clock() - self._looked_s >= SELDOM_S:
            errors = (self._asked(self._memory_errors) or 0) + self._new_xids()
            self._seldom = {"errors": errors, "processes": self._asked(self._others)}
            self._looked_s = self._clock()
        return self._seldom

    def _open(self, pci_bus_id: str) -> None:
        try:
            self._nvml.nvmlInit()
            self._device = self._nvml.nvmlDeviceGetHandleByPciBusId(pci_bus_id.encode())
        except self._nvml.NVMLError as error:
            self.note = f"NVML doesn't answer ({error}): clocks, throttling and errors went unseen"
            return
        self._asked(self._listen)

    def _listen(self) -> int:
        events = self._nvml.nvmlEventSetCreate()
        self._nvml.nvmlDeviceRegisterEvents(self._device, self._nvml.nvmlEventTypeXidCriticalError, events)
        self._events = events
        return 0

    def _new_xids(self) -> int:
        """All Xid events since the start: those that wait are taken, without waiting for more."""
        while self._events is not None and self._asked(self._take_event) is not None:
            self._xids += 1
        return self._xids

    def _take_event(self) -> int:
        self._nvml.nvmlEventSetWait_v2(self._events, 0)
        return 1

    def _asked(self, question: Callable[[], int]) -> int | None:
        try:
            return int(question())
        except self._nvml.NVMLError:  # not supported by this GPU, or not permitted here
            return None

    def _memory_errors(self) -> int:
        n = self._nvml
        kinds = n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, n.NVML_VOLATILE_ECC
        return int(n.nvmlDeviceGetTotalEccErrors(self._device, *kinds))

    def _others(self) -> int:
        running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._device)
        return sum(1 for process in running if process.pid != os.getpid())


def throttles(bits: int) -> tuple[str, ...]:
    """Names of the set bits that slow a running kernel."""
    return tuple(name for bit, name in THROTTLES.items() if bits & bit)


def _package() -> Any:
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml
