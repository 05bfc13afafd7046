"""Time of one call on a GPU; and on a CPU, which tests the instrument and says nothing of the kernel."""

from __future__ import annotations

import statistics
from typing import Any, ClassVar

from benchmarks.history import measure, protocol

SHAPE = {"rows": protocol.ROWS, "page": protocol.PAGE, "heads": protocol.HEADS, "head-dim": protocol.HEAD_DIM}


class Gpu:
    """Per context: the kernel, and a read of the same bytes in the same run, which no change can slow."""

    params: ClassVar[tuple[int, ...]] = protocol.CONTEXTS
    param_names: ClassVar[list[str]] = ["context"]
    version, unit, timeout = protocol.LATENCY, "us", measure.TIMEOUT_S

    def setup_cache(self) -> None:
        """One run for all contexts."""
        measure.keep("latency.Gpu", _on_gpu)

    def setup(self, context: int) -> None:
        """Find this context's row."""
        rows = measure.kept()["results"]["contexts"]
        self.row = next(row for row in rows if row["shape"]["context"] == context)

    def track_kernel(self, context: int) -> dict[str, Any]:
        """µs a call: the median of each capture, as captures of one kernel differ."""
        del context
        return _captures(self.row["kernel"])

    def track_read(self, context: int) -> dict[str, Any]:
        """µs of the streaming read."""
        del context
        return _captures(self.row["read"])


class HostClock:
    """CPU time of the host backend's sm_70 model."""

    params: ClassVar[tuple[int, ...]] = protocol.HOST_CONTEXTS
    param_names: ClassVar[list[str]] = ["context"]
    version, unit, timeout = protocol.HOST_CLOCK, "us", measure.TIMEOUT_S

    def setup_cache(self) -> None:
        """One run for all contexts."""
        measure.keep("latency.HostClock", _on_host)

    def setup(self, context: int) -> None:
        """Find this context's samples."""
        self.times_us = measure.kept()[str(context)]

    def track_instrument(self, context: int) -> dict[str, Any]:
        """µs a call."""
        del context
        return measure.samples(self.times_us)


def _on_gpu() -> Any:
    import torch  # asv imports the suites in every process; only this one needs it

    from grouped_attention.load import arch_of_gpu

    if not torch.cuda.is_available():
        raise measure.UnmeasuredError("no-gpu", "a GPU's time is measured on a GPU", skip=True)
    arch = arch_of_gpu()
    if arch is None:
        raise measure.UnmeasuredError("no-gpu", "this kernel doesn't run on this GPU", skip=True)
    shape = [word for name, value in SHAPE.items() for word in (f"--{name}", str(value))]
    contexts = ",".join(map(str, protocol.CONTEXTS))
    effort = ["--graphs", str(protocol.GRAPHS), "--replays", str(protocol.REPLAYS)]
    where = ["--artifact", str(measure.binary("cuda", arch)), "--contexts", contexts]
    return measure.command("benchmarks", "latency", *where, *shape, *effort)


def _on_host() -> Any:
    from benchmarks.history import host_clock

    return host_clock.times_us(measure.binary("host", "sm_70"))


def _captures(samples: dict[str, Any]) -> dict[str, Any]:
    return measure.samples([statistics.median(times) for times in samples["timed_us"]])
