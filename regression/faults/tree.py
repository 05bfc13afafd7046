"""Builds many faulty kernels from one prepared build: each compiles only what its patch touches."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fixtures import faults
from fixtures.faults import Fault
from grouped_attention import collect, recipe, toolchain
from grouped_attention.build import BuildError, plan
from grouped_attention.manifest import LOG_NAME, NAME, dumps, open_artifact
from grouped_attention.recipe import Plan

BUILD_TIMEOUT_S = 900
# Where the precision version is: asking a library for it costs seconds, so only these faults' are asked.
VERSIONED = "include/grouped/arch.h"
IGNORED = shutil.ignore_patterns("__pycache__", "*.so", "build")


class Tree:
    """A build tree of one backend, architecture and variant, in the folder `work`, which it makes.

    The sources and a finished build of them are kept aside, with their times, and put back before each
    fault: so neither a fault's files nor its objects stay for the next. What is built goes into `store`, into
    a folder named by all that went into it, and is taken from there the next time.
    """

    def __init__(
        self, source: Path, work: Path, store: Path, *, backend: str, arch: str, variant: str = "release"
    ) -> None:
        self.work, self.store = work, store
        self._backend, self._arch, self._variant = backend, arch, variant
        self._version: int | None = None
        shutil.copytree(source, work / "kept-source", ignore=IGNORED)

    def sound(self) -> Path:
        """The kernel as it is, as an artifact folder."""
        return self._artifact(None)

    def faulty(self, fault: Fault) -> Path:
        """The kernel with the fault in it, as an artifact folder.

        FaultError when the patch doesn't fit, BuildError when the result doesn't compile.
        """
        return self._artifact(fault)

    def package(self, folder: Path) -> Path:
        """A folder with the Python package of the last build."""
        shutil.copytree(self.work / "source" / "grouped_attention", folder / "grouped_attention")
        return folder

    def _artifact(self, fault: Fault | None) -> Path:
        wanted = self._planted(fault)
        folder = self.store / wanted.digest
        if not folder.is_dir():
            if not (self.work / "kept-build").is_dir():
                self._prepare()
                wanted = self._planted(fault)
            self._build(wanted)
            self._collect(wanted, folder, ask=fault is not None and VERSIONED in faults.touched(fault))
        return open_artifact(folder).directory

    def _planted(self, fault: Fault | None) -> Plan:
        shutil.rmtree(self.work / "source", ignore_errors=True)
        shutil.copytree(self.work / "kept-source", self.work / "source")
        if fault is not None:
            faults.apply(fault, self.work / "source")
        source = self.work / "source"
        return plan(source, backend=self._backend, arch=self._arch, variant=self._variant)

    def _prepare(self) -> None:
        wanted = self._planted(None)
        self._run([str(wanted.tools.cmake), *recipe.configure_arguments(wanted, self.work)])
        self._run([str(wanted.tools.cmake), "--build", str(self.work / "build"), "--parallel", "2"])
        shutil.copytree(self.work / "build", self.work / "kept-build")
        self._version, _ = collect.precision_version(self.work / "build" / f"{wanted.stem}.so")

    def _build(self, wanted: Plan) -> None:
        build = self.work / "build"
        shutil.rmtree(build)
        shutil.copytree(self.work / "kept-build", build)
        shutil.rmtree(self.work / "prefix", ignore_errors=True)
        # One process: gates of the fault before run beside it.
        self._run([str(wanted.tools.cmake), "--build", str(build), "--parallel", "1"])
        self._run([str(wanted.tools.cmake), "--install", str(build)])

    def _collect(self, wanted: Plan, folder: Path, *, ask: bool) -> None:
        self.store.mkdir(parents=True, exist_ok=True)
        out = Path(tempfile.mkdtemp(prefix=".", dir=self.store))
        for path in sorted((self.work / "prefix").rglob(f"{wanted.stem}.*")):
            shutil.copyfile(path, out / path.name)
        library = out / f"{wanted.stem}.so"
        version = collect.precision_version(library)[0] if ask else self._version
        built = collect.Built(
            source=self.work / "source", build=self.work / "build", prefix=self.work / "prefix"
        )
        (out / NAME).write_text(dumps(collect.manifest_of(wanted, built, out, version)))
        # Another process may have put the same there in the meantime.
        if folder.is_dir():
            shutil.rmtree(out)
        else:
            out.rename(folder)

    def _run(self, command: Sequence[str]) -> None:
        log = self.work / LOG_NAME
        with log.open("w") as output:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env=toolchain.environment(), timeout=BUILD_TIMEOUT_S, check=False,
            )  # fmt: skip
        if done.returncode != 0:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise BuildError(f"{Path(command[0]).name} {command[1]} gave {done.returncode}:\n{tail}")
