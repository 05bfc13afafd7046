"""A fake compute-sanitizer: a script that leaves what a run of the real one would."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sanitizer import cuda
from sanitizer.batch import Launch
from sanitizer.tools import Tool

SAMPLES = Path(__file__).parent / "samples"
NOTHING = '<?xml version="1.0" encoding="utf-8"?>\n<ComputeSanitizerOutput>\n</ComputeSanitizerOutput>\n'
HEAD = """#!{python}
import json, os, signal, sys, time
from pathlib import Path

arguments = sys.argv[1:]
folder = Path(arguments[arguments.index("--cases") + 1]).parent
names = json.loads((folder / "cases.json").read_text())
xml, log = folder / "report.xml", folder / "tool.txt"
NOTHING = {nothing!r}


def sample(name, kernel=None):
    text = (Path({samples!r}) / name).read_text()
    return text if kernel is None else text.replace("oob_read", kernel)


def mark(event, **fields):
    with (folder / "marks.jsonl").open("a") as file:
        file.write(json.dumps({{"event": event, **fields}}) + "\\n")


def clean(wanted):
    for name in wanted:
        mark("begin", case=name)
        mark("end", case=name, complaint=None)

"""

MakeLaunch = Callable[..., Launch]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeLaunch:
    """A launcher whose tool runs the given Python lines."""
    monkeypatch.setattr(cuda, "QUIET_LIMIT_S", 4.0)

    def make(body: str, tool: str = "memcheck") -> Launch:
        script = tmp_path / "compute-sanitizer"
        head = HEAD.format(python=sys.executable, nothing=NOTHING, samples=str(SAMPLES))
        script.write_text(head + body)
        script.chmod(0o755)
        found = Tool(path=script, version=(2025, 3, 1))
        return cuda.launcher(found, tool, tmp_path / "library.so", tmp_path / "control.cubin")

    return make
