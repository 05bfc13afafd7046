"""`python -m regression.emulation.worker`: emulates, so that a kernel that crashes ends only this process.

Prints a line of JSON when a case begins to be emulated, and one with its result when it has ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import torch

import grouped_attention
from regression.emulation import cases, compare, memory
from regression.emulation.emulator import Emulator
from regression.emulation.results import CaseResult


def main() -> int:
    """Run the cases that are named."""
    options = _parser().parse_args()
    torch.set_num_threads(1)
    emulator = Emulator(options.emulator)
    host = grouped_attention.load(options.host)
    if host.arch != emulator.arch or host.backend != "host":
        print(f"the emulator is of {emulator.arch}, {options.host} of {host.backend} {host.arch}")
        return 1
    emulator.watch_signals()
    for name in options.cases.split(","):
        _run(name, emulator, host)
    return 0


def _run(name: str, emulator: Emulator, host: grouped_attention.Extension) -> None:
    tick = time.perf_counter()
    inputs = cases.build(name)
    wanted = compare.expected(host, inputs)
    _say({"begin": name})
    found = tuple(compare.findings(emulator, memory.guarded(inputs), wanted))
    seconds = time.perf_counter() - tick
    _say(CaseResult(name=name, findings=found, seconds=seconds).as_json())


def _say(value: object) -> None:
    print(json.dumps(value), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m regression.emulation.worker", description=__doc__)
    parser.add_argument("--emulator", type=Path, required=True)
    parser.add_argument("--host", type=Path, required=True)
    parser.add_argument("--cases", required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
