"""The host libraries under test, each built once, and every implementation that a processor may choose."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "support"))

import grouped_attention as ga

ARCHITECTURES = ("sm_70", "sm_80", "sm_90")
IMPLEMENTATIONS = ("scalar", "baseline", "x86-64-v3")

Host = Callable[[str], ga.Extension]


@pytest.fixture(scope="session")
def host() -> Host:
    """The host library of an architecture."""
    return cache(lambda arch: ga.load(backend="host", arch=arch))


@pytest.fixture(scope="session", params=ARCHITECTURES)
def ext(request: pytest.FixtureRequest, host: Host) -> ga.Extension:
    """Each architecture's host library in turn."""
    return host(request.param)


@pytest.fixture(scope="session")
def implementations(
    host: Host, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Mapping[str, ga.Extension]]:
    """By name, those of an architecture that run here; copies, as a library chooses when it is loaded."""

    def load(arch: str, name: str) -> ga.Extension | None:
        copy = tmp_path_factory.mktemp(name) / "library.so"
        shutil.copy(host(arch).library, copy)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("GROUPED_ATTENTION_CPU", name)
            try:
                extension = ga.load(copy)
            except ga.SettingError:
                return None  # not on this processor
        assert extension.functions["cpu_implementation"]() == name
        return extension

    def load_all(arch: str) -> Mapping[str, ga.Extension]:
        found = {name: load(arch, name) for name in IMPLEMENTATIONS}
        return {name: extension for name, extension in found.items() if extension is not None}

    return cache(load_all)
