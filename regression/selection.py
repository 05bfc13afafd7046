"""Groups by name, telling a wrong word from a damaged fixture."""

from __future__ import annotations

from fixtures import groups
from fixtures.errors import FixtureError
from fixtures.groups import Group

DEFAULT_GROUPS = "core"


class SelectionError(Exception):
    """A selection that names nothing."""


def select(selection: str) -> tuple[Group, ...]:
    """The groups that `fixtures.groups.load` gives.

    SelectionError for a word that names none, FixtureError when the list of groups itself is damaged.
    """
    groups.load("all")
    try:
        return groups.load(selection)
    except FixtureError as error:
        raise SelectionError(str(error)) from error


def select_one(group_id: str) -> Group:
    """The one group of that id."""
    found = select(group_id)
    if len(found) != 1:
        raise SelectionError(f"{group_id!r} names {len(found)} groups: give the id of one")
    return found[0]
