"""What `--locate` prints, and its verdict."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evidence.ending import CHECKED
from regression.judge import Judgement, Reason, unknown
from regression.locate import Finding
from regression.quantities import MEANING, Divergence
from regression.schedule import TILE_TOKENS

SHOWN_SPLITS = 12


def text(finding: Finding) -> str:
    """The whole finding, one fact a line."""
    lines = [_group(finding), _golden(finding), *_splits(finding), _reference(finding), *_values(finding)]
    if finding.output is not None:
        lines.append(f"output: first difference at [row, head, dimension] {finding.output.text()}")
    return "\n".join(line for line in lines if line)


def judgement(finding: Finding) -> Judgement:
    """rejected with the place, admitted when every bit agrees, unknown with nothing to compare with."""
    if not finding.judged:
        return unknown("no-golden", f"{finding.group.id} has neither a golden nor a reference: use --against")
    if not finding.differs:
        return Judgement(word="admitted", reasons=(Reason(code="same-bits", text=_same(finding)),))
    return Judgement(word="rejected", reasons=(Reason(code="located", text=place(finding)),))


def place(finding: Finding) -> str:
    """The first place, as exactly as it is known."""
    if finding.divergence is not None:
        return _divergence_place(finding, finding.divergence)
    if finding.digests is not None:
        split, row = finding.digests.first_split, finding.digests.first_row
        return f"split {split} {_tokens(finding, split)}, row {row}; no reference for head and quantity"
    return "combine: all partials agree, the output does not"


def as_json(finding: Finding, judgement: Judgement) -> dict[str, Any]:
    """The finding as plain values."""
    reference = finding.reference
    return {
        "outcome": CHECKED[judgement.word],
        "reasons": [asdict(reason) for reason in judgement.reasons],
        "group": finding.group.id,
        "arch": finding.arch,
        "digests": None if finding.digests is None else asdict(finding.digests),
        "places": [list(place) for place in finding.places],
        "reference": None if reference is None else {"label": reference.label, "trusted": reference.trusted},
        "divergence": None if finding.divergence is None else asdict(finding.divergence),
        "token": finding.token,
        "output": None if finding.output is None else asdict(finding.output),
    }


def _divergence_place(finding: Finding, found: Divergence) -> str:
    dimension = "" if found.dimension is None else f", dimension {found.dimension}"
    where = f"split {found.split} {_tokens(finding, found.split)}, row {found.row}, head {found.head}"
    return f"{found.quantity} of {where}{dimension}"


def _tokens(finding: Finding, split: int) -> str:
    span = finding.tokens(split)
    return f"(tokens {span.first}…{span.end - 1})" if span.end > span.first else "(no tokens)"


def _group(finding: Finding) -> str:
    group = finding.group
    lengths = ", ".join(map(str, group.row_lens))
    return f"group {group.id} on {finding.arch}: page {group.page}, {group.layout}, row lengths {lengths}"


def _golden(finding: Finding) -> str:
    if not finding.has_golden:
        return "golden: none"
    if finding.digests is None:
        return f"golden: all {finding.splits * finding.group.rows} (split, row) digests agree"
    return f"golden: {finding.digests.text()}"


def _splits(finding: Finding) -> list[str]:
    """The differing splits with their rows, the first few."""
    rows: dict[int, list[int]] = {}
    for split, row in finding.places:
        rows.setdefault(split, []).append(row)
    shown = [f"  split {s} {_tokens(finding, s)}: rows {', '.join(map(str, rows[s]))}" for s in rows]
    more = len(shown) - SHOWN_SPLITS
    return shown[:SHOWN_SPLITS] + ([f"  … and {more} more splits"] if more > 0 else [])


def _reference(finding: Finding) -> str:
    if finding.reference is None and finding.has_golden and not finding.differs:
        return ""
    if finding.reference is None:
        return "reference: none to compare values with; name one with --against LIBRARY_OR_ARTIFACT"
    trusted = {
        True: "gives the golden's digests",
        False: "does NOT give the golden's digests: it differs too",
        None: "no golden vouches for it",
    }
    return f"reference: {finding.reference.label} ({trusted[finding.reference.trusted]})"


def _values(finding: Finding) -> list[str]:
    found = finding.divergence
    if found is None:
        same = finding.reference is not None and finding.output is not None
        return [f"partials: all equal; suspect {MEANING['combine']}"] if same else []
    counts = ", ".join(f"{name} {count}" for name, count in found.counts.items())
    return [
        f"differing elements: {counts}",
        f"first: {_divergence_place(finding, found)}",
        f"  {found.difference.text().replace('golden', 'reference')}, {found.ulps} ulp apart",
        _token(finding),
        f"  suspect {MEANING[found.quantity]}",
    ]


def _token(finding: Finding) -> str:
    if finding.token is None:
        return ""
    tile = finding.token // TILE_TOKENS
    return f"  it differs from token {finding.token} on (tile {tile}): a prefix that ends before it agrees"


def _same(finding: Finding) -> str:
    against = "golden" if finding.has_golden else "reference"
    return f"{finding.group.id}: every digest and every output bit is the {against}'s"
