"""Named peers: other implementations of the operation that can stand on either side as `peer:NAME`.

A peer registers a function that returns a callable with the operation's signature, or raises ImportError
with advice where it isn't installed. There is none yet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PREFIX = "peer:"
Factory = Callable[[], Callable[..., Any]]

_registry: dict[str, Factory] = {}


def register(name: str, factory: Factory) -> None:
    """Make `peer:NAME` known; ValueError for a second one of that name."""
    if name in _registry:
        raise ValueError(f"there is a peer {name!r} already")
    _registry[name] = factory


def names() -> tuple[str, ...]:
    """All registered peers."""
    return tuple(sorted(_registry))


def find(name: str) -> Callable[..., Any]:
    """The callable of a peer; LookupError names the known ones, ImportError says what isn't installed."""
    if name not in _registry:
        raise LookupError(f"no peer {name!r}; there are: {', '.join(names()) or 'none yet'}")
    return _registry[name]()
