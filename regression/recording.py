"""One evidence record per run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evidence import ending, record, store
from evidence.record import Record
from fixtures import integrity
from regression.judge import Judgement
from regression.results import GroupResult
from regression.target import Target


@dataclass(frozen=True, kw_only=True)
class Start:
    """When a run began."""

    at: datetime
    tick: float

    @classmethod
    def now(cls) -> Start:
        """This moment."""
        return cls(at=datetime.now(UTC), tick=time.perf_counter())


def of_groups(results: Sequence[GroupResult]) -> dict[str, Any]:
    """A replay's results, as a record holds them."""
    return {"groups": [group.as_json() for group in results]}


def make(
    kind: str,
    target: Target,
    judgement: Judgement,
    *,
    results: Mapping[str, Any],
    selection: Mapping[str, Any],
    start: Start,
) -> Record:
    """The record of a run that has just ended, judged."""
    return record.make(
        kind=kind,
        artifact=target.subject,
        inputs=integrity.manifest_hash(),
        selection=selection,
        outcome=ending.CHECKED[judgement.word],
        reasons=[record.Reason(code=reason.code, text=reason.text) for reason in judgement.reasons],
        results={"target": target.label, **results},
        started_at=start.at,
        duration_s=time.perf_counter() - start.tick,
    )


def keep(made: Record, copy: Path | None) -> Path:
    """Append the record to the store, and write the same text to `copy` if given."""
    path = store.append(made)
    ending.write(copy, record.as_json(made))
    return path
