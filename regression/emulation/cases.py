"""The calls that are emulated: of fixtures.cases those that run, and two that are made for CUDA kernels."""

from __future__ import annotations

from dataclasses import replace

from fixtures import cases
from fixtures.cases import Spec
from fixtures.cases.case import causal
from fixtures.cases.realise import to_inputs
from fixtures.errors import FixtureError
from fixtures.inputs import Inputs
from fixtures.rule import INSTANCES

# Five chunks and more in each split of the architecture with most of them: a ring of buffers comes round.
RING_TOKENS = 132 * 5 * 64 + 1000
# Every number of row tiles; tails, masks, pages that end in a tile, narrow loads, NaN, rows without a token.
CORE = (
    "rows-8", "pad-8-q-offset-1", "strides-differ", "page-16", "page-848-len-849", "page-16-len-33",
    "page-16-over", "page-848-over-all", "tail-hostile", "tail-in-tile", "empty-first", "empty-last",
    "empty-but-one", "empty-all", "nan-v-late", "v-codes-00", "k-codes", "v-underflow", "clamp-combine-at",
    "clamp-rescale-at", "clamp-residual", "full-splits", "wild",
)  # fmt: skip
# What the larger instance would take seconds for.
SMALL = (
    "ring", "rows-2", "rows-5", "rows-distinct", "rows-distinct-up", "pad-token-8", "interleaved-pad-8",
    "page-3456", "nan-v-early", "nan-k-late", "nan-q", "infinite-q", "over-capacity", "small-residual-one",
    "scales-all", "v-codes-c0", "far-31", "far-32", "pool-70000",
)  # fmt: skip
# Contexts for which an emulator takes minutes.
LARGE = tuple(cases.LONG)


def select(text: str) -> tuple[str, ...]:
    """Names that `core`, `all` or a comma-separated list chooses; FixtureError for an unknown one.

    What must be refused is never among them: a kernel isn't launched for it.
    """
    if text == "core":
        wide, narrow = (f"{heads}x{dim}" for heads, dim in sorted(INSTANCES, reverse=True))
        return (*(f"{name}-{narrow}" for name in SMALL + CORE), *(f"{name}-{wide}" for name in CORE))
    everything = (*_own(), *(name for name in cases.select("all") if _runs(name)))
    if text == "all":
        return tuple(name for name in everything if not name.startswith(LARGE))
    wanted = tuple(dict.fromkeys(name for name in text.split(",") if name))
    unknown = [name for name in wanted if name not in everything]
    if unknown or not wanted:
        what = ", ".join(unknown) or repr(text)
        raise FixtureError(f"no case that can be emulated is called {what}: give core, all or names")
    return wanted


def build(name: str) -> Inputs:
    """The tensors of a case, on the CPU."""
    own = _own().get(name)
    return cases.build(name).inputs if own is None else to_inputs(own)


def _own() -> dict[str, Spec]:
    return {spec.name: spec for heads, dim in INSTANCES for spec in _made(heads, dim)}


def _made(heads: int, dim: int) -> tuple[Spec, Spec]:
    plain = Spec(heads=heads, dim=dim, catches="", permuted=True, seed=1, lens=causal(RING_TOKENS, 2))
    ring = replace(plain, catches="a buffer used again too early")
    wild = replace(
        plain,
        catches="codes that no model gives: any scores, NaN among them",
        lens=causal(330, 7),
        page=112,
        wild=True,
        nans=3,
        scales=(0.3, 0.11, 1 / 7),
    )
    return ring.named(f"ring-{heads}x{dim}"), wild.named(f"wild-{heads}x{dim}")


def _runs(name: str) -> bool:
    spec = cases.rows().get(name)
    return spec is None or spec.refusal is None
