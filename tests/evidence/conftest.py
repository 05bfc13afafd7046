"""A candidate, a base, and records that would admit it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

from evidence import policy
from evidence.instrument import Instrument
from evidence.policy import Requirement
from evidence.question import Question, Side
from evidence.record import Reason, Record, Subject

INPUTS = "inputs-hash"
RUN = "run-1"
BINDING = "python-layer"
STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
GPU = {"name": "H200", "uuid": "GPU-1", "driver": "580.1"}
TARGETS = [
    *(("host", arch) for arch in policy.HOST_ARCHITECTURES),
    *(("cuda", arch) for arch in policy.CUDA_ARCHITECTURES),
]

MakeRecord = Callable[..., Record]
Complete = Callable[[Question], list[Record]]


def subject(backend: str, arch: str, code: str) -> Subject:
    """A binary whose file hash follows from its code."""
    return Subject(
        backend=backend,
        arch=arch,
        sha256=f"file-{backend}-{arch}-{code}",
        code_digest=f"{backend}-{arch}-{code}",
    )


def side(host: str, cuda: str, **fields: Any) -> Side:
    """All binaries of one side, by the code of its host and cuda libraries."""
    codes = {"host": host, "cuda": cuda}
    subjects = tuple(subject(backend, arch, codes[backend]) for backend, arch in TARGETS)
    return Side(subjects=subjects, **{"revision": "r" * 40, "binding": BINDING, **fields})


@pytest.fixture
def unchanged() -> Question:
    """The candidate's host code differs from the base's, the CUDA code doesn't."""
    kinds = {entry.kind for entry in policy.POLICY}
    return Question(
        candidate=side("new", "same"),
        base=side("old", "same"),
        inputs=INPUTS,
        instruments={kind: f"instrument-{kind}" for kind in kinds},
        run_id=RUN,
    )


@pytest.fixture
def changed(unchanged: Question) -> Question:
    """The CUDA code differs too."""
    return replace(unchanged, candidate=side("new", "other"))


@pytest.fixture
def make_record() -> MakeRecord:
    """A fresh record for one requirement of a question; keywords replace fields."""

    def make(question: Question, entry: Requirement, **fields: Any) -> Record:
        owner = question.candidate if entry.side == "candidate" else question.base
        found = owner.find(entry.backend, entry.arch)
        assert found is not None
        base = question.base.find(entry.backend, entry.arch)
        selection: dict[str, Any] = dict(entry.selection)
        if entry.against_base:
            file = None if base is None or entry.kind == "static" else base.sha256
            selection["base"] = None if base is None else base.code_digest or file
        outcome = fields.get("outcome", "pass")
        return Record(
            **{
                "kind": entry.kind,
                "artifact": replace(found, binding=owner.binding),
                "instrument": Instrument(version="1", digest=question.instruments[entry.kind]),
                "machine": {"gpus": [GPU] if entry.on_gpu else []},
                "inputs": INPUTS,
                "selection": selection,
                "outcome": outcome,
                "reasons": () if outcome == "pass" else (Reason(code="bits-differ", text="3 groups"),),
                "results": {},
                "command": ("python", "-m", "something"),
                "started_at": STARTED.isoformat(),
                "duration_s": 1.0,
                "run_id": question.run_id or RUN,
                **fields,
            }
        )

    return make


@pytest.fixture
def complete(make_record: MakeRecord) -> Complete:
    """One passing record for each requirement of a question."""

    def make(question: Question) -> list[Record]:
        return [make_record(question, entry) for entry in policy.requirements(question)]

    return make


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A .kernelgate of the test's own, and no run."""
    folder = tmp_path / "home"
    monkeypatch.setenv("KERNELGATE_HOME", str(folder))
    monkeypatch.delenv("KERNELGATE_RUN", raising=False)
    return folder
