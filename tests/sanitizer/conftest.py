"""A fake compute-sanitizer, which leaves what a run of the real one would, and a careless kernel."""

from __future__ import annotations

import functools
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import cache
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

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "naive.cc"
CARELESS = Path(__file__).parent / "support" / "careless.cc"

MakeLaunch = Callable[..., Launch]
Careless = Callable[..., Path]


@pytest.fixture(scope="session")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Careless:
    """Compiles a user's careless kernel, once per set of flags."""
    return cache(lambda *flags: _compiled(CARELESS, tmp_path_factory.mktemp("careless"), *flags))


@pytest.fixture
def example(tmp_path: Path) -> Careless:
    """Compiles the documented example, after these replacements, as its own comment says."""

    def make(*replacements: tuple[str, str]) -> Path:
        text = EXAMPLE.read_text()
        assert all(old in text for old, _ in replacements)
        source = tmp_path / EXAMPLE.name
        source.write_text(functools.reduce(lambda body, pair: body.replace(*pair), replacements, text))
        comment = "".join(line.removeprefix("//") for line in text.splitlines() if line.startswith("//   "))
        flags = shlex.split(comment.split("naive.cc")[0])
        assert flags[0] == "g++"
        return _compiled(source, tmp_path, *flags[1:])

    return make


def _compiled(source: Path, folder: Path, *flags: str) -> Path:
    library = folder / f"{source.stem}.so"
    config = [sys.executable, "-m", "tvm_ffi.config", "--cxxflags", "--ldflags", "--libs"]
    given = subprocess.run(config, capture_output=True, text=True, check=True, timeout=60).stdout
    command = ["g++", "-shared", "-fPIC", "-O1", *flags, str(source), "-o", str(library)]
    subprocess.run([*command, *shlex.split(given)], check=True, timeout=300)
    return library


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of a test go to a folder of its own."""
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path / "home"


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
