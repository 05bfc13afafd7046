"""What an admission needs. A later gate is one more entry.

Reads nothing and runs nothing: pure data, and the choice of which entries apply to a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evidence.question import Question

# Those that have goldens.
HOST_ARCHITECTURES = ("sm_70", "sm_90")
CUDA_ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
GPU_ARCHITECTURE = "sm_90"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One record that must be there and pass, for the binary of one side, backend and architecture.

    `selection` is the least that must have been covered. `calls`: the library was called, so the Python layer
    counts. `on_gpu`: counts from any run and machine, but must have seen a GPU. `against_base`: the record
    must name the base's binary. `control`: replays the base, to tell a broken machine from a broken change;
    its failure alone rejects nothing. `optional`: a failure rejects, but nothing waits for a pass.
    """

    kind: str
    backend: str
    arch: str
    command: str
    side: str = "candidate"
    selection: Mapping[str, str | bool] = field(default_factory=dict)
    uses_inputs: bool = True
    calls: bool = True
    on_gpu: bool = False
    against_base: bool = False
    control: bool = False
    optional: bool = False
    only_if_cuda_differs: bool = False

    @property
    def name(self) -> str:
        """Short name for a person."""
        side = "base " if self.side == "base" else ""
        return f"{side}{self.kind} {self.backend} {self.arch}"


def _host_replay(arch: str, side: str) -> Requirement:
    return Requirement(
        kind="replay",
        backend="host",
        arch=arch,
        side=side,
        selection={"groups": "core", "partials": True},
        control=side == "base",
        command=f"python -m regression replay --backend host --arch {arch} --artifact {side.upper()}",
    )


def _gpu_replay(arch: str) -> Requirement:
    return Requirement(
        kind="replay",
        backend="cuda",
        arch=arch,
        selection={"groups": "all", "partials": True},
        on_gpu=True,
        only_if_cuda_differs=True,
        command=f"python -m regression replay --backend cuda --arch {arch} --groups all --artifact CANDIDATE",
    )


def _contract(backend: str, arch: str) -> Requirement:
    return Requirement(
        kind="contract",
        backend=backend,
        arch=arch,
        selection={"cases": "core", "partials": True},
        on_gpu=backend == "cuda",
        only_if_cuda_differs=backend == "cuda",
        command=f"python -m regression contract --backend {backend} --arch {arch} --artifact CANDIDATE",
    )


def _memcheck(backend: str, arch: str) -> Requirement:
    return Requirement(
        kind="memcheck",
        backend=backend,
        arch=arch,
        selection={"cases": "core"},
        on_gpu=backend == "cuda",
        only_if_cuda_differs=backend == "cuda",
        command=f"python -m sanitizer memcheck --backend {backend} --arch {arch} --cases core"
        " --artifact CANDIDATE",
    )


def _static(arch: str) -> Requirement:
    return Requirement(
        kind="static",
        backend="cuda",
        arch=arch,
        uses_inputs=False,
        calls=False,
        against_base=True,
        command=f"python -m benchmarks static --arch {arch} --artifact CANDIDATE --base BASE",
    )


def _abba(arch: str) -> Requirement:
    return Requirement(
        kind="abba",
        backend="cuda",
        arch=arch,
        # All contexts, by the rule that was calibrated.
        selection={"plan": "standard"},
        uses_inputs=False,
        on_gpu=True,
        against_base=True,
        only_if_cuda_differs=True,
        command=f"python -m benchmarks abba --backend cuda --arch {arch} --base BASE --candidate CANDIDATE",
    )


def _emulation(arch: str) -> Requirement:
    """What a laptop can say against changed CUDA code; a GPU alone can speak for it."""
    return Requirement(
        kind="emulation",
        backend="cuda",
        arch=arch,
        selection={"cases": "core"},
        calls=False,
        optional=True,
        only_if_cuda_differs=True,
        command=f"python -m regression emulate --arch {arch} --artifact CANDIDATE",
    )


POLICY = (
    *(_host_replay(arch, "candidate") for arch in HOST_ARCHITECTURES),
    *(_host_replay(arch, "base") for arch in HOST_ARCHITECTURES),
    *(_contract("host", arch) for arch in HOST_ARCHITECTURES),
    *(_static(arch) for arch in CUDA_ARCHITECTURES),
    *(_memcheck("host", arch) for arch in HOST_ARCHITECTURES),
    *(_emulation(arch) for arch in CUDA_ARCHITECTURES),
    *(_gpu_replay(arch) for arch in CUDA_ARCHITECTURES),
    *(_contract("cuda", arch) for arch in CUDA_ARCHITECTURES),
    _memcheck("cuda", GPU_ARCHITECTURE),
    *(_abba(arch) for arch in CUDA_ARCHITECTURES),
)


def requirements(question: Question, policy: tuple[Requirement, ...] = POLICY) -> tuple[Requirement, ...]:
    """The entries that apply: those for a GPU only where the CUDA code isn't shown to be the base's."""
    wanted = differing(question)
    return tuple(
        entry
        for entry in policy
        if (entry.arch in wanted or not entry.only_if_cuda_differs)
        and not _is_beside_the_base(entry, question)
    )


def differing(question: Question) -> tuple[str, ...]:
    """Architectures whose CUDA binary has no twin in the base: equal code, called through equal Python."""
    if question.candidate.binding != question.base.binding:
        return CUDA_ARCHITECTURES
    return tuple(arch for arch in CUDA_ARCHITECTURES if not _same_code(question, arch))


def to_prove(question: Question) -> tuple[str, ...]:
    """Architectures that a GPU must vouch for.

    A change of all of them may be proven on one: the scope names the others as unproven, unless they have
    records too. A change that leaves that one's code alone needs a GPU of its own architecture.
    """
    found = differing(question)
    return (GPU_ARCHITECTURE,) if GPU_ARCHITECTURE in found else found


def covers(seen: Mapping[str, object], needed: Mapping[str, str | bool]) -> bool:
    """True when a record's selection includes what is needed: "all" includes "core"."""
    return all(
        seen.get(key) == value or (value == "core" and seen.get(key) == "all")
        for key, value in needed.items()
    )


def _is_beside_the_base(entry: Requirement, question: Question) -> bool:
    """True for a control of a target that a base given as one library doesn't have, while it has another."""
    has_another = any(subject.backend == entry.backend for subject in question.base.subjects)
    target = (entry.backend, entry.arch)
    return (
        entry.control
        and has_another
        and question.base.find(*target) is None
        and target not in question.base.failed
    )


def _same_code(question: Question, arch: str) -> bool:
    one, other = question.candidate.find("cuda", arch), question.base.find("cuda", arch)
    if one is None or other is None:
        return False
    return one.code_digest is not None and one.code_digest == other.code_digest
