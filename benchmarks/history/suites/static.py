"""What the compiled kernels need, per architecture and instance. No GPU is needed."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.history import measure, protocol

Kernel = dict[str, Any]


class Costs:
    """Over the kernels of one instance. Each figure is one whose rise is a loss."""

    params: ClassVar[tuple[tuple[str, ...], ...]] = (protocol.ARCHITECTURES, protocol.INSTANCES)
    param_names: ClassVar[list[str]] = ["architecture", "instance"]  # asv calls the processor "arch"
    version, timeout = protocol.STATIC, measure.TIMEOUT_S

    def setup_cache(self) -> None:
        """Read all architectures."""
        measure.keep_each("static.Costs", protocol.ARCHITECTURES, _kernels)

    def setup(self, arch: str, instance: str) -> None:
        """Find the instance's kernels."""
        kernels = measure.kept(arch)
        self.kernels: list[Kernel] = [one for one in kernels if f"_{instance}" in one["kernel"]]
        if not self.kernels:
            raise measure.UnmeasuredError("kernel-vanished", f"{arch} has no kernel for {instance}")

    def track_registers(self, arch: str, instance: str) -> int:
        """Most registers of a thread."""
        del arch, instance
        return max(int(one["registers"]) for one in self.kernels)

    def track_spills(self, arch: str, instance: str) -> int:
        """Bytes spilled, all kernels together."""
        del arch, instance
        return sum(int(one["spill_store_bytes"] + one["spill_load_bytes"]) for one in self.kernels)

    def track_shared(self, arch: str, instance: str) -> int:
        """Most bytes of shared memory of a block."""
        del arch, instance
        return max(int(one["static_shared_bytes"] + one["dynamic_shared_bytes"]) for one in self.kernels)

    def track_code(self, arch: str, instance: str) -> int:
        """Bytes of machine code, all kernels together."""
        del arch, instance
        return sum(int(one["code_bytes"]) for one in self.kernels)

    track_registers.unit = "registers"  # type: ignore[attr-defined]
    track_spills.unit = track_shared.unit = track_code.unit = "bytes"  # type: ignore[attr-defined]


def _kernels(arch: str) -> list[Kernel]:
    found = measure.command(
        "benchmarks", "static", "--artifact", str(measure.binary("cuda", arch)), codes=measure.JUDGED
    )
    kernels: list[Kernel] = found[0]["kernels"]
    return kernels
