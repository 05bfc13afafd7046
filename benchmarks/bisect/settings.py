"""One question, as the steps that git starts read it from a file."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

ABBA = ("-m", "benchmarks", "abba")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`root` is the checkout that measures, `clone` where git bisects; `measure` is what Python runs.

    A commit is bad when its time is above the good one's by more than the fraction `threshold`. `alpha` is
    each comparison's, such that all of them together err at the rate that was asked for.
    """

    root: str
    clone: str
    good: str
    options: tuple[str, ...]
    alpha: float
    journal: str
    threshold: float = 0.0
    measure: tuple[str, ...] = ABBA

    def write(self, path: Path) -> None:
        """Keep them as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    @classmethod
    def read(cls, path: Path) -> Settings:
        """What `write` kept."""
        value = json.loads(path.read_text())
        return cls(**{**value, "options": tuple(value["options"]), "measure": tuple(value["measure"])})
