"""The protocols of a study side by side as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.calibrate.summary import Summary

KEY = ("trials of", "context")
COLUMNS = ("called", "rate", "95 % bounds", "median s", "finds", "ratio", "unknown", "processes")
ABSENT = ("-",) * len(COLUMNS)
Key = tuple[str, int | None]


def text(protocols: Mapping[str, Sequence[Summary]]) -> str:
    """One line per kind and context, one group of columns per protocol.

    Alarms of identical code are false; of planted slowdowns they are the power.
    """
    found = {name: {(s.kind, s.context): s for s in rows} for name, rows in protocols.items()}
    keys: dict[Key, None] = {key: None for rows in found.values() for key in rows}
    heads = [KEY, *(tuple(_titled(name, column) for column in COLUMNS) for name in found)]
    lines = [
        _flat(heads),
        *(_flat([_key(key), *(_cells(rows.get(key)) for rows in found.values())]) for key in keys),
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines)


def _titled(protocol: str, column: str) -> str:
    return f"{protocol}: {column}" if column == COLUMNS[0] else column


def _flat(parts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(cell for part in parts for cell in part)


def _key(key: Key) -> tuple[str, ...]:
    kind, context = key
    return kind, "all" if context is None else str(context)


def _cells(one: Summary | None) -> tuple[str, ...]:
    if one is None:
        return ABSENT
    found = one.rate
    return (
        f"{found.hits} of {found.trials}",
        f"{found.hits / found.trials:.1%}" if found.trials else "-",
        f"{found.low:.1%} - {found.high:.1%}",
        f"{one.median_s:.2f}",
        _number(one.least_ratio, ".4f"),
        _number(one.ratio, ".5f"),
        str(one.unknown),
        _number(one.process_deviation, ".3%"),
    )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
