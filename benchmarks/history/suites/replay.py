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
        measure.keep_each("replay.Host", protocol.ARCHITECTURES, _on_host)

    def setup(self, arch: str, instance: str) -> None:
        """Find the instance's groups."""
        self.groups: list[Group] = [one for one in measure.kept(arch) if _instance(one) == instance]

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
        measure.keep_each("replay.Gpu", protocol.ARCHITECTURES, _on_gpu)


def _on_host(arch: str) -> list[Group]:
    return _groups("host", arch)


def _on_gpu(arch: str) -> list[Group]:
    import torch  # asv imports the suites in every process; only this one needs it

    from grouped_attention.load import arch_of_gpu

    if not torch.cuda.is_available() or arch_of_gpu() != arch:
        raise measure.UnmeasuredError("no-gpu", f"no GPU here runs {arch}", skip=True)
    return _groups("cuda", arch)


def _groups(backend: str, arch: str) -> list[Group]:
    artifact = str(measure.binary(backend, arch))
    where = ["--artifact", artifact, "--groups", protocol.GROUPS, "--no-partials"]
    # Bits that differ from today's goldens are a result too: the goldens may be younger than the commit.
    found = measure.command("regression", "replay", *where, codes=measure.JUDGED)
    groups: list[Group] = found["results"]["groups"]
    return groups


def _percent_of_budget(group: Group) -> float:
    accuracy = group["accuracy"]
    return round(100 * float(accuracy["relative_l2"]) / float(accuracy["budget"]), 2)


def _instance(group: Group) -> str:
    return str(group["instance"]).strip("()").replace(", ", "x")
