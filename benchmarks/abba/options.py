"""Options that `abba` and `calibrate` share, and how their values are read."""

from __future__ import annotations

import argparse
import math
import random
from pathlib import Path

from grouped_attention.load import ARCHITECTURES

WHAT = "a revision, an artifact folder, a library, module:function or peer:NAME"
MOST_SEEDS = 2**32
PLOTS = (".svg", ".png", ".pdf")


def sides(verb: argparse.ArgumentParser) -> None:
    """What is compared."""
    verb.add_argument("--base", metavar="SPEC", help=f"{WHAT}; default: the merge base with main")
    verb.add_argument("--candidate", metavar="SPEC", help=f"{WHAT}; default: the work tree")
    verb.add_argument("--aa", action="store_true", help="time identical code too, against itself")
    verb.add_argument(
        "--plot", type=plot_path, metavar="PATH", help="draw a forest plot there: .svg, .png or .pdf"
    )


def target(verb: argparse.ArgumentParser) -> None:
    """Where it is measured, and where to write it."""
    verb.add_argument("--backend", choices=("cuda", "host"), help="default: cuda where there is a GPU")
    verb.add_argument("--arch", choices=ARCHITECTURES, help="default: the GPU's; sm_70 on the host")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the record there too")
    seed = random.SystemRandom().randrange(MOST_SEEDS)
    verb.add_argument("--seed", type=int, default=seed, help="of the orders; default: drawn")


def shapes(verb: argparse.ArgumentParser) -> None:
    """The family of comparisons."""
    text = "tokens; default: 8192 to 262144, on the host 64"
    verb.add_argument("--contexts", type=numbers, metavar="N,N", help=text)
    verb.add_argument("--rows", type=numbers, default=(5,), metavar="N,N", help="default: 5")
    verb.add_argument("--page", type=numbers, default=(848,), metavar="N,N", help="default: 848")
    verb.add_argument("--heads", type=count, default=6)
    verb.add_argument("--head-dim", type=count, default=256)
    verb.add_argument("--l2", choices=("cold", "hot"), default="cold", help="default: cold")


def rule(verb: argparse.ArgumentParser, *, budget_s: float | None, budget_text: str) -> None:
    """The decision."""
    verb.add_argument("--budget", type=seconds, default=budget_s, metavar="TIME", help=budget_text)
    verb.add_argument("--alpha", type=share, default=0.05, help="the family's error rate; default 0.05")
    verb.add_argument("--margin", type=share, default=0.005, help="what counts as the same; default 0.005")
    text = "slowdown that is allowed; default 0"
    verb.add_argument("--reject-above", type=not_negative, default=0.0, help=text)
    text = "half-width of the interval that ends a 'same'; default 0.001"
    verb.add_argument("--resolution", type=positive, default=0.001, help=text)


def numbers(text: str) -> tuple[int, ...]:
    """Positive whole numbers with commas between them."""
    found = tuple(int(word) for word in text.split(",") if word.isdigit() and int(word) > 0)
    if len(found) != text.count(",") + 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of positive numbers such as 8192,65536")
    return found


def seconds(text: str) -> float:
    """A time above 0 such as 10s, 500ms or 2m; a bare number is in seconds."""
    for unit, factor in (("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("", 1.0)):
        number = text.removesuffix(unit)
        if text.endswith(unit) and number.replace(".", "", 1).isdigit():
            return positive(number) * factor
    raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 10s, 500ms or 2m")


def count(text: str) -> int:
    """A whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def share(text: str) -> float:
    """A fraction between 0 and 1, both left out."""
    value = not_negative(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value


def positive(text: str) -> float:
    """A finite number above 0."""
    value = not_negative(text)
    if value == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def not_negative(text: str) -> float:
    """A finite number, at least 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a finite number of at least 0")
    return value


def plot_path(text: str) -> Path:
    """A path with a suffix that a plot can have."""
    if Path(text).suffix.lower() not in PLOTS:
        raise argparse.ArgumentTypeError(f"{text!r} doesn't end in {', '.join(PLOTS)}")
    return Path(text)
