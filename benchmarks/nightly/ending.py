"""From what became of all steps to one word: nothing is lost, and what was not run is said."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.nightly import plan
from benchmarks.nightly.perform import FAILED, REJECTED, UNDECIDED, UNKNOWN, Ended
from benchmarks.nightly.plan import Missing

# A rejection outranks what is unknown: it is known.
WORST_FIRST = ((REJECTED, "rejected"), (FAILED, "unknown"), (UNKNOWN, "unknown"), (UNDECIDED, "undecided"))


def conclude(
    done: Sequence[Ended], missing: Sequence[Missing], gpus: Sequence[str], *, partial: bool
) -> tuple[str, str]:
    """The word and its reason. `partial`: only some steps were asked for, which admits nothing."""
    for word, verdict in WORST_FIRST:
        found = [one for one in done if one.word == word and (not one.step.control or word == FAILED)]
        if found:
            return (
                verdict,
                f"step-{word}: {len(found)} of {len(done)} steps, {_first(found)}{_also(done, word)}",
            )
    gaps = [one for one in missing if one.is_gap]
    if gaps:
        return "unknown", f"not-run: {plan.names(gaps)}"
    if not any(one.step.verdict for one in done):
        return "unknown", "nothing-measured: no step ran"
    scope = " + ".join(["host", *gpus])
    text = f"{scope}: {len(done)} steps passed"
    if partial:
        return "undecided", f"partial: {text}, only those that were asked for"
    absent = f"; not run: {plan.names(missing)}" if missing else ""
    return "admitted", f"passed: {text}{absent}"


def _first(found: Sequence[Ended]) -> str:
    return f"first {found[0].step.name}: {found[0].last.removeprefix('verdict: ')}"


def _also(done: Sequence[Ended], shown: str) -> str:
    others = {word: sum(one.word == word for one in done) for word in (REJECTED, FAILED, UNKNOWN, UNDECIDED)}
    text = ", ".join(f"{count} {word}" for word, count in others.items() if count and word != shown)
    return f"; also {text}" if text else ""
