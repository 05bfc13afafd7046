"""Tables of a replay for a terminal and for CHANGELOG.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from regression.results import GroupResult


@dataclass(frozen=True, kw_only=True)
class Row:
    """One instance x context: counts over its groups. Bits are None where no group has a golden."""

    instance: str
    context: int
    groups: int
    bitwise: int | None
    partials: int
    improved: int
    worsened: int
    tied: int
    disagreements: int
    golden_disagreements: int | None
    elements: int
    worst_l2: float
    worst_share_of_budget: float


def summarise(results: Sequence[GroupResult]) -> list[Row]:
    """Rows by instance and context, in that order."""
    keys = sorted({(group.instance, group.context) for group in results})
    return [_row([g for g in results if (g.instance, g.context) == key]) for key in keys]


def total(results: Sequence[GroupResult]) -> Row:
    """All groups in one row."""
    return _row(results)


def _row(groups: Sequence[GroupResult]) -> Row:
    golden = [g.golden_accuracy.disagreements for g in groups if g.golden_accuracy is not None]
    return Row(
        instance=groups[0].instance,
        context=groups[0].context,
        groups=len(groups),
        bitwise=sum(bool(g.bitwise) for g in groups) if golden else None,
        partials=sum(g.partials == "ok" for g in groups),
        improved=_trends(groups, "improved"),
        worsened=_trends(groups, "worsened"),
        tied=_trends(groups, "tied"),
        disagreements=sum(g.accuracy.disagreements for g in groups),
        golden_disagreements=sum(golden) if golden else None,
        elements=sum(g.elements for g in groups),
        worst_l2=max(g.accuracy.relative_l2 for g in groups),
        worst_share_of_budget=max(_share(g) for g in groups),
    )


def _trends(groups: Iterable[GroupResult], word: str) -> int:
    return sum(group.trend == word for group in groups)


def _share(group: GroupResult) -> float:
    return group.accuracy.relative_l2 / group.accuracy.budget


HEADINGS = ("instance", "context", "bits", "partials", "disagree", "worst L2", "budget", "moved")


def cells(row: Row, *, label: str | None = None) -> tuple[str, ...]:
    """A row's texts under HEADINGS. `moved` counts improved/worsened/tied groups whose bits changed."""
    share = row.disagreements / row.elements
    return (
        label or row.instance,
        "" if label else f"{row.context // 1024}K",
        f"{'-' if row.bitwise is None else row.bitwise}/{row.groups}",
        f"{row.partials}/{row.groups}",
        f"{_was(row)}{row.disagreements} ({share:.3%})",
        f"{row.worst_l2:.3e}",
        f"{row.worst_share_of_budget:.1%}",
        f"{row.improved}/{row.worsened}/{row.tied}",
    )


def rich_table(results: Sequence[GroupResult], *, title: str) -> Table:
    """The summary for a terminal."""
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == "instance" else "right", no_wrap=True)
    for row in summarise(results):
        table.add_row(*cells(row))
    table.add_section()
    table.add_row(*cells(total(results), label="all"))
    return table


RENEWAL_HEADINGS = (
    "instance",
    "context",
    "groups",
    "disagree",
    "worst L2",
    "budget",
    "improved/worsened/tied",
)


def markdown(results: Sequence[GroupResult]) -> str:
    """What a renewal of goldens changed, as a Markdown table."""
    rows = [_renewal(row) for row in summarise(results)] + [_renewal(total(results), label="all")]
    lines = [RENEWAL_HEADINGS, ("---",) * len(RENEWAL_HEADINGS), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _renewal(row: Row, *, label: str | None = None) -> tuple[str, ...]:
    instance, context, _bits, _partials, *rest = cells(row, label=label)
    return (instance, context, str(row.groups), *rest)


def _was(row: Row) -> str:
    """The golden's count before an arrow, when it is another."""
    old = row.golden_disagreements
    return "" if old is None or old == row.disagreements else f"{old} → "


SHOWN_LINES = 24


def complaints(results: Sequence[GroupResult]) -> list[str]:
    """For each group whose output or partials differ: where first, and both values. The first few groups."""
    lines = _differences(results)
    hidden = len(lines) - SHOWN_LINES
    return lines[:SHOWN_LINES] + ([f"… and {hidden} more lines: --json has all"] if hidden > 0 else [])


def _differences(results: Sequence[GroupResult]) -> list[str]:
    lines = []
    for group in results:
        if group.first is not None:
            share = f"{group.mismatching} of {group.elements} elements differ"
            lines.append(f"{group.id}: {share}, first {group.first.text()}")
        if group.partial_difference is not None:
            lines.append(f"{group.id}: partials: {group.partial_difference.text()}")
    return lines
