"""From what became of each commit's results to one word. History admits nothing: it keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.history.results import Tally
from evidence.ending import Verdict

ASV_FAILED_SOME = 2  # asv's exit status when it ran, and a benchmark failed


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One commit: `status` is asv's, `lost` names results that only an earlier run has."""

    commit: str
    tally: Tally
    status: int = 0
    notes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    dirty: tuple[str, ...] = ()
    known: bool = False

    @property
    def failed(self) -> bool:
        """Something that should be there isn't, or asv ended badly."""
        return bool(self.tally.failed or self.lost) or self.status not in (0, ASV_FAILED_SOME)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def conclude(outcomes: Sequence[Outcome]) -> Verdict:
    """Unknown when a result is missing; skips are counted, and nothing but skips is unknown too."""
    failed = [one for one in outcomes if one.failed]
    if failed:
        first = failed[0]
        count = sum(len(one.tally.failed) + len(one.lost) for one in failed)
        text = f"{count} results missing of {len(failed)} commits, first {_first(first)}"
        return Verdict(word="unknown", code="results-missing", text=text)
    measured = sum(len(one.tally.measured) for one in outcomes)
    skipped = sum(len(one.tally.skipped) for one in outcomes)
    if not measured:
        text = f"{skipped} results are not for this machine"
        return Verdict(word="unknown", code="nothing-measured", text=text)
    text = f"{measured} results of {len(outcomes)} commits kept, {skipped} not for this machine"
    dirty = next((one.dirty for one in outcomes if one.dirty), ())
    if dirty:
        text = f"{text}; but {dirty[0]} differs from the commit"
        return Verdict(word="undecided", code="dirty-tree", text=text)
    return Verdict(word="admitted", code="measured", text=f"{text}; nothing was compared")


def taken(files: int, differing: int) -> Verdict:
    """Of a run that only took over another machine's results."""
    text = f"{files} files taken over, {differing} left where they were, as ours differ"
    return Verdict(
        word="undecided" if differing else "admitted", code="taken", text=f"{text}; nothing measured"
    )


def _first(outcome: Outcome) -> str:
    names = (*outcome.tally.failed, *outcome.lost, f"asv's exit status {outcome.status}")
    return f"{outcome.commit[:12]}: {names[0]}"
