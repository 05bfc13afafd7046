"""Records are shown on other machines: they name modules and relative paths, not this machine's folders."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evidence import places


def command(words: Sequence[str]) -> tuple[str, ...]:
    """A command line as anybody would type it in the checkout."""
    program = Path(words[0]) if words else Path()
    start = ["python", "-m", program.parent.name] if program.name == "__main__.py" else list(words[:1])
    return tuple(without_root([*start, *words[1:]]))


def without_root(value: Any) -> Any:
    """A JSON value whose texts name files of the checkout by their path in it."""
    if isinstance(value, str):
        return value.replace(f"{places.root()}{os.sep}", "")
    if isinstance(value, Mapping):
        return {key: without_root(item) for key, item in value.items()}
    return [without_root(item) for item in value] if isinstance(value, list | tuple) else value
