"""From an interval to a word, from words to a verdict.

Each comparison's interval errs with probability at most alpha ÷ comparisons, whenever one stops. So by
Bonferroni's inequality the family (all contexts, rows and pages of a run) errs with probability at most
alpha.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.abba.sequence import Interval
from evidence.ending import Verdict

SLOWER, FASTER, SAME, UNDECIDED, UNKNOWN = "slower", "faster", "same", "undecided", "unknown"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`alpha` is the family's, `margin` what counts as the same, both as fractions.

    A slowdown rejects when the interval's lower end exceeds 1 + `reject_above`. Sampling goes on after
    "same" until the interval is within ± `resolution` of its middle: it should find small slowdowns too.
    """

    comparisons: int
    alpha: float = 0.05
    margin: float = 0.005
    reject_above: float = 0.0
    resolution: float = 0.001
    least_rounds: int = 8

    @property
    def alpha_each(self) -> float:
        """One comparison's share of alpha."""
        return self.alpha / self.comparisons

    def word(self, found: Interval, rounds: int) -> str:
        """What an interval after so many valid rounds says."""
        if rounds < self.least_rounds:
            return UNKNOWN
        if found.low > 0:
            return SLOWER
        if found.high < 0:
            return FASTER
        inside = math.log1p(-self.margin) <= found.low and found.high <= math.log1p(self.margin)
        return SAME if inside else UNDECIDED

    def rejects(self, found: Interval, rounds: int) -> bool:
        """True when it is slower by more than is allowed."""
        return self.word(found, rounds) == SLOWER and found.low > math.log1p(self.reject_above)

    def settled(self, found: Interval, rounds: int) -> bool:
        """True when more samples are not needed."""
        word = self.word(found, rounds)
        if word == SLOWER:
            return not found.low <= math.log1p(self.reject_above) < found.high
        return word == FASTER or (word == SAME and found.half_width <= self.resolution)


def judge(named_words: Sequence[tuple[str, str, bool]]) -> Verdict:
    """Over a family of (name, word, rejects): one rejection rejects; unknown never passes."""
    for word, code, chosen in (
        ("rejected", "slower", [n for n, _, rejects in named_words if rejects]),
        ("unknown", "too-few-samples", [n for n, w, _ in named_words if w == UNKNOWN]),
        ("undecided", "time-undecided", [n for n, w, _ in named_words if w == UNDECIDED]),
    ):
        if chosen:
            return Verdict(
                word=word, code=code, text=f"{len(chosen)} of {len(named_words)}: {', '.join(chosen)}"
            )
    words = sorted({word for _, word, _ in named_words})
    if not words:
        return Verdict(word="unknown", code="too-few-samples", text="nothing was compared")
    code = "no-slower" if words != [SAME] else SAME
    return Verdict(word="admitted", code=code, text=f"{', '.join(words)} in {len(named_words)} comparisons")
