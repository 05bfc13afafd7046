"""Writes the manifest beside a library that CMake has just installed, so that loading can verify it.

Runs in a wheel's build environment, which has no torch: the product's build modules are taken from their
folder without the package's own __init__, which would import it.
"""

from __future__ import annotations

import argparse
import sys
import types
from pathlib import Path

KERNELS = Path(__file__).resolve().parents[1]


def main() -> None:
    """Read the command line, describe the library, write manifest.json."""
    options = _parser().parse_args()
    package = types.ModuleType("grouped_attention")
    package.__path__ = [str(KERNELS / "grouped_attention")]
    sys.modules["grouped_attention"] = package
    from grouped_attention import collect, manifest, recipe, toolchain

    tools = toolchain.Tools(cxx=options.cxx, cmake=options.cmake, ninja=options.ninja)
    wanted = recipe.plan(KERNELS, backend=options.backend, arch=options.arch, tools=tools)
    built = collect.Built(
        source=KERNELS, build=options.build, prefix=options.folder.parent, target=f"{wanted.stem}.so"
    )
    version, _ = collect.precision_version(options.folder / f"{wanted.stem}.so")
    (options.folder / manifest.NAME).unlink(missing_ok=True)
    described = collect.manifest_of(wanted, built, options.folder, version)
    (options.folder / manifest.NAME).write_text(manifest.dumps(described))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("backend", "arch"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("build", "folder", "cxx", "cmake", "ninja"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    return parser


if __name__ == "__main__":
    main()
