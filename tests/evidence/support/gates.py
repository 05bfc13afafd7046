"""What the tests of the verdict share: gates by name, records without those of one, and a verdict's codes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from evidence.policy import POLICY, Requirement
from evidence.question import Question
from evidence.record import Record
from evidence.verdict import Verdict

MakeRecord = Callable[..., Record]
Complete = Callable[[Question], list[Record]]


def codes(verdict: Verdict) -> list[str]:
    return [reason.code for reason in verdict.reasons]


def entry(kind: str, backend: str, arch: str, side: str = "candidate") -> Requirement:
    (found,) = [e for e in POLICY if (e.kind, e.backend, e.arch, e.side) == (kind, backend, arch, side)]
    return found


def without(records: list[Record], question: Question, gone: Requirement) -> list[Record]:
    """All records but those of one requirement, whatever binary they share."""
    owner = question.candidate if gone.side == "candidate" else question.base
    artifact = owner.find(gone.backend, gone.arch)
    return [r for r in records if not (r.kind == gone.kind and r.artifact.sha256 == artifact.sha256)]


def only_differing(unchanged: Question, arch: str) -> Question:
    """The question with another code of one CUDA architecture."""
    subjects = tuple(
        replace(s, code_digest="another") if (s.backend, s.arch) == ("cuda", arch) else s
        for s in unchanged.candidate.subjects
    )
    return replace(unchanged, candidate=replace(unchanged.candidate, subjects=subjects))
