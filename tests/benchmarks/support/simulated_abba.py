"""Stands in for `python -m benchmarks abba` in a bisection: the engine on a machine of known noise.

A commit's time is in its file `time.json`: {"slowdown": 0.03, "neighbours": 0.1}, the latter the share of
samples that a neighbour makes longer, by up to a half; "refuses" or "breaks" end it otherwise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

from simulated_machine import Noise, SimulatedMachine

from benchmarks.abba import engine, sequence
from benchmarks.abba.decision import Rule
from benchmarks.abba.engine import Comparison


def _time(commit: str) -> dict[str, float]:
    command = ["git", "show", f"{commit}:time.json"]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def _recorded(found: Comparison) -> dict[str, object]:
    """The part of abba's record that a bisection reads; its own module would import torch."""
    return {
        "word": found.word,
        "ratio": math.exp(sequence.centre([one.log_ratio for one in found.counted])),
        "low": math.exp(found.interval.low),
        "high": math.exp(found.interval.high),
        "valid_rounds": len(found.counted),
        "alarm": None,
    }


def main() -> int:
    """Compare two commits' times; write what `abba --json` would."""
    parser = argparse.ArgumentParser()
    for name in ("base", "candidate", "json"):
        parser.add_argument(f"--{name}")
    for name, default in (("alpha", 0.05), ("margin", 0.005), ("resolution", 0.001), ("reject-above", 0.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    options = parser.parse_args()
    good, mine = _time(options.base), _time(options.candidate)
    if "breaks" in mine:
        print("verdict: unknown (machinery: OSError: no space left)")
        return 5
    if "refuses" in mine:
        print("verdict: unknown (build-failed: host sm_70: error: expected ';')")
        return 4
    seed = int(os.environ["SIMULATED_SEED"]) + int(options.candidate[:8], 16)
    ratio = (1 + mine["slowdown"]) / (1 + good["slowdown"])
    noise = Noise(neighbour_rate=mine["neighbours"], neighbour_size=0.5)
    machine = SimulatedMachine(seed=seed, ratio=ratio, noise=noise)
    rule = Rule(
        comparisons=1,
        alpha=options.alpha,
        margin=options.margin,
        resolution=options.resolution,
        reject_above=options.reject_above,
    )
    found = engine.compare(machine, rule, budget_s=4.0, source=random.Random(seed))
    Path(options.json).write_text(json.dumps({"results": {"comparisons": [_recorded(found)]}}))
    print(f"verdict: {found.word}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
