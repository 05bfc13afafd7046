"""Distance to the truth on the stored real inputs, per architecture and instance."""

from __future__ import annotations

from typing import Any, ClassVar

from benchmarks.history import measure, protocol

Group = dict[str, Any]


class Host:
    """The CPU models of each architecture."""

    params: ClassVar[tuple[tuple[str, ...], ...]] = (protocol.ARCHITECTURES, protocol.INSTANCES)
    param_names: ClassVar[list[str]] = ["architecture", "instance"]  # asv calls the processor "arch"
    version, timeout = protocol.REPLAY, measure.TIMEOUT_S

    def setup_cache(self) -> None:
        """Replay all architectures."""
        measure.keep("replay.Host", _on_host)

    def setup(self, arch: str, instance: str) -> None:
        """Find the instance's groups."""
        groups = measure.kept()
        if arch not in groups:
            raise NotImplementedError(f"not the architecture of this machine: {arch}")
        self.groups: list[Group] = [one for one in groups[arch] if _instance(one) == instance]

    def track_disagreements(self, arch: str, instance: str) -> int:
        """Output elements that aren't the truth rounded to fp16."""
        del arch, instance
        return sum(int(one["accuracy"]["disagreements"]) for one in self.groups)

    def track_error(self, arch: str, instance: str) -> float:
        """Worst relative L2 error, in percent of its budget."""
        del arch, instance
        return max(_percent_of_budget(one) for one in self.groups)

    def track_changed(self, arch: str, instance: str) -> int:
        """Groups whose bits aren't today's goldens."""
        del arch, instance
        return sum(one["mismatching"] != 0 for one in self.groups)

    track_disagreements.unit = "elements"  # type: ignore[attr-defined]
    track_error.unit = "percent"  # type: ignore[attr-defined]
    track_changed.unit = "groups"  # type: ignore[attr-defined]


class Gpu(Host):
    """The CUDA kernels, for the architecture of the GPU at hand."""

    def setup_cache(self) -> None:
        """Replay on the GPU."""
        measure.keep("replay.Gpu", _on_gpu)


def _on_host() -> dict[str, list[Group]]:
    return {arch: _groups("host", arch) for arch in protocol.ARCHITECTURES}


def _on_gpu() -> dict[str, list[Group]]:
    import torch  # asv imports the suites in every process; only this one needs it

    from grouped_attention.load import arch_of_gpu

    arch = arch_of_gpu() if torch.cuda.is_available() else None
    if arch not in protocol.ARCHITECTURES:
        raise measure.UnmeasuredError("no-gpu", "no GPU here that has goldens", skip=True)
    return {arch: _groups("cuda", arch)}


def _groups(backend: str, arch: str) -> list[Group]:
    artifact = str(measure.binary(backend, arch))
    where = ["--artifact", artifact, "--groups", protocol.GROUPS, "--no-partials"]
    # Bits that differ from today's goldens are a result too: the goldens may be younger than the commit.
    found = measure.command("regression", "replay", *where, codes=(0, 1))
    groups: list[Group] = found["results"]["groups"]
    return groups


def _percent_of_budget(group: Group) -> float:
    accuracy = group["accuracy"]
    return round(100 * float(accuracy["relative_l2"]) / float(accuracy["budget"]), 2)


def _instance(group: Group) -> str:
    return str(group["instance"]).strip("()").replace(", ", "x")
