"""What a failed replay found, from its record, and the command that finds the quantity at fault."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evidence import places
from evidence.findings import FAIL, Finding
from evidence.question import Side
from evidence.record import Record
from evidence.verdict import Verdict

KIND = "replay"


def of_failures(decided: Verdict, candidate: Side, records: Iterable[Record]) -> list[str]:
    """Two lines for each replay that fails: the first group, element and values; and how to go on."""
    known = {record.id: record for record in records}
    lines = []
    for finding in decided.findings:
        if finding.state == FAIL and finding.requirement.kind == KIND and not finding.requirement.control:
            lines += _lines(finding, candidate, known[finding.records[0]])
    return lines


def _lines(finding: Finding, candidate: Side, record: Record) -> list[str]:
    group = _first_failing(record.results.get("groups"))
    if group is None:
        return []
    entry = finding.requirement
    where = candidate.places.get((entry.backend, entry.arch), "CANDIDATE")
    target = f"--backend {entry.backend} --arch {entry.arch} --artifact {_short(Path(where))}"
    return [
        f"{entry.name}: group {group['id']}: {_difference(group)}",
        f"  {_python()} -m regression replay {target} --locate {group['id']}",
    ]


def _first_failing(groups: object) -> Mapping[str, Any] | None:
    """The first group with other bits, else with other partials; None in a record that tells of none."""
    told = [g for g in groups if isinstance(g, dict) and "id" in g] if isinstance(groups, list) else []
    for what in ("first", "partial_difference"):
        found = next((group for group in told if isinstance(group.get(what), dict)), None)
        if found is not None:
            return found
    return None


def _difference(group: Mapping[str, Any]) -> str:
    first = group.get("first")
    if isinstance(first, dict):
        value = first.get
        return (
            f"first differing element {value('index')}: golden {value('golden')} ({value('golden_bits')}), "
            f"got {value('got')} ({value('got_bits')}), oracle {value('oracle')}"
        )
    partials = group["partial_difference"].get
    return f"partials differ, first at split {partials('first_split')}, row {partials('first_row')}"


def _python() -> str:
    """The shared environment's interpreter, which finds the suite; any other must be told where it is."""
    own = places.root() / ".venv"
    this = Path(sys.executable)
    return _short(this) if this.is_relative_to(own) else "PYTHONPATH=.:kernels python"


def _short(path: Path) -> str:
    return str(path.relative_to(places.root()) if path.is_relative_to(places.root()) else path)
