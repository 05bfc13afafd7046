"""The table of a replay, and the changelog's entry."""

from __future__ import annotations

import dataclasses
import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from regression import changelog, progress, table
from regression.bits import Difference
from regression.results import Accuracy, GroupResult, PartialDifference

ACCURACY = Accuracy(relative_l2=1e-4, floor=9e-5, budget=2e-4, disagreements=3, not_finite=0)
GROUP = GroupResult(
    id="a", instance="(6, 256)", context=8192, elements=1000, mismatching=0, accuracy=ACCURACY, partials="ok"
)
FIRST = Difference(index=(0,), golden=1.0, got=2.0, golden_bits="0x3C00", got_bits="0x4000")


@given(trends=st.lists(st.sampled_from(["improved", "worsened", "tied", "same"]), min_size=1))
def test_a_row_counts_what_moved(trends: list[str]) -> None:
    groups = [dataclasses.replace(GROUP, trend=trend, golden_accuracy=ACCURACY) for trend in trends]
    (row,) = table.summarise(groups)
    assert (row.improved, row.worsened, row.tied) == tuple(
        map(trends.count, ["improved", "worsened", "tied"])
    )
    assert (row.groups, row.disagreements, row.elements) == (len(trends), 3 * len(trends), 1000 * len(trends))


def test_rows_are_by_instance_and_context_and_the_last_is_all() -> None:
    other = dataclasses.replace(GROUP, context=65536)
    small = dataclasses.replace(GROUP, instance="(3, 64)")
    rows = table.summarise([GROUP, other, small, GROUP])
    assert [(row.instance, row.context, row.groups) for row in rows] == [
        ("(3, 64)", 8192, 1),
        ("(6, 256)", 8192, 2),
        ("(6, 256)", 65536, 1),
    ]
    assert table.markdown([GROUP, other]).splitlines()[-1].startswith("| all |  | 2 |")


def test_changed_disagreements_show_both_counts() -> None:
    was = dataclasses.replace(ACCURACY, disagreements=5)
    (row,) = table.summarise([dataclasses.replace(GROUP, golden_accuracy=was)])
    assert "5 → 3 (0.300%)" in table.cells(row)


def test_the_table_fits_a_terminal_of_80_columns() -> None:
    console = Console(width=80, file=io.StringIO())
    console.print(table.rich_table([GROUP] * 200, title="t"))
    text = console.file.getvalue()
    assert "…" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80


def test_many_differences_are_cut_short_and_that_is_said() -> None:
    bad = dataclasses.replace(
        GROUP,
        mismatching=1,
        first=FIRST,
        partial_difference=PartialDifference(differing=2, compared=9, first_split=1, first_row=0),
    )
    lines = table.complaints([bad] * 40)
    assert len(lines) == table.SHOWN_LINES + 1
    assert lines[-1] == f"… and {80 - table.SHOWN_LINES} more lines: --json has all"
    assert table.complaints([GROUP]) == []


def test_a_changelog_without_an_unreleased_section_gets_one() -> None:
    entry = changelog.Entry(
        reason="why", arch="sm_70", kernel="k", date="2026-01-01", first=True, results=[GROUP]
    )
    text = changelog.inserted("# Changelog\n\n## 0.1.0\n\n- First.\n", entry)
    assert text.startswith("# Changelog\n\n## Unreleased\n\n### sm_70, bits changed: accepted because why\n")
    assert text.endswith("## 0.1.0\n\n- First.\n")


def test_a_bar_yields_every_item_on_a_terminal_and_elsewhere() -> None:
    for terminal in (True, False):
        console = Console(force_terminal=terminal, file=io.StringIO())
        assert list(progress.bar(range(5), total=5, title="t", console=console)) == list(range(5))
        assert bool(console.file.getvalue()) == terminal
