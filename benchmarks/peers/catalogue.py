"""The peers by name. A factory returns a callable with the operation's signature, or raises ImportError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.peers import flashinfer, sdpa

PREFIX = "peer:"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """`what` says what is timed, and what isn't."""

    what: str
    make: Callable[[], Callable[..., Any]]


PEERS: Mapping[str, Peer] = {
    "flashinfer": Peer(
        what="FlashInfer's FA2 prefill wrapper on the paged E4M3 cache; planning is not timed",
        make=flashinfer.make,
    ),
    "sdpa": Peer(
        what="gather the pages, convert to fp16, torch's scaled_dot_product_attention: all of it timed",
        make=lambda: sdpa.whole,
    ),
    "sdpa-ready": Peer(
        what="torch's scaled_dot_product_attention on contiguous fp16 keys and values, made untimed",
        make=sdpa.make_ready,
    ),
}


def find(name: str) -> Callable[..., Any]:
    """The callable of a peer; LookupError names the known ones, ImportError says what isn't installed."""
    if name not in PEERS:
        raise LookupError(f"no peer {name!r}; there are: {', '.join(PEERS)}")
    return PEERS[name].make()
