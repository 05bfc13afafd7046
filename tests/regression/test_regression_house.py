"""The command as a process, in a copy of the instrument whose stored bytes a test may damage."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import safetensors.numpy

from artifacts.sides import copy_set, from_path
from fixtures.integrity import Manifest, save_tensors

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("fixtures", "regression", "evidence", "artifacts", "kernels/grouped_attention")
GROUP = "3x64-8k-00"
GOLDENS = "golden/sm_70.safetensors"
TIMEOUT_S = 120


@dataclass(frozen=True, kw_only=True)
class House:
    """A copy of the checkout's instrument, and the artifact to replay."""

    folder: Path
    artifact: Path

    def replay(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code, last line and all output of `python -m regression replay`."""
        paths = os.pathsep.join([str(self.folder), str(self.folder / "kernels")])
        command = [sys.executable, "-m", "regression", "replay", "--artifact", str(self.artifact), *arguments]
        environment = {**os.environ, "PYTHONPATH": paths, "KERNELGATE_HOME": str(self.folder / "home")}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout.splitlines()[-1], done.stdout + done.stderr

    def flip(self, name: str) -> None:
        """Change one bit of a stored file's last byte."""
        path = self.folder / "fixtures" / name
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))


@pytest.fixture
def house(tmp_path: Path, artifact: Path) -> House:
    """A copy of our own to damage."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    copy_set(from_path(artifact), tmp_path / "set")  # without git, its built.json names the revision
    return House(folder=tmp_path, artifact=tmp_path / "set")


def test_the_stored_core_goldens_are_this_kernels_bits(house: House) -> None:
    code, verdict, output = house.replay("--groups", "core", "--json", str(house.folder / "core.json"))
    assert code == 0, output
    assert verdict.startswith("verdict: admitted (same-bits: host sm_70 (")
    groups = json.loads((house.folder / "core.json").read_text())["results"]["groups"]
    assert len(groups) == 40
    assert all(group["bitwise"] and group["partials"] == "ok" for group in groups)


@pytest.mark.parametrize("name", ["banks/queries.safetensors", GOLDENS])
def test_one_changed_stored_bit_is_named_and_never_passes(house: House, name: str) -> None:
    house.flip(name)
    code, verdict, _ = house.replay("--groups", GROUP)
    assert code == 5
    assert verdict.startswith("verdict: unknown (fixture-damaged: ")
    assert name in verdict
    assert "tensor" in verdict


def test_a_wrong_golden_with_a_right_manifest_is_a_difference(house: House) -> None:
    folder = house.folder / "fixtures"
    tensors = safetensors.numpy.load((folder / GOLDENS).read_bytes())
    changed = tensors[f"{GROUP}.out"].copy()
    changed.view("uint16")[0, 1, 2] ^= 1
    save_tensors(folder / GOLDENS, {**tensors, f"{GROUP}.out": changed})
    note = Manifest.open(folder).files[GOLDENS]["note"]
    Manifest.open(folder).with_file(GOLDENS, note).save()
    code, verdict, output = house.replay("--groups", GROUP)
    assert code == 1
    assert "bits-differ" in verdict
    assert f"{GROUP}: 1 of " in output
    assert "[0, 1, 2]: golden" in output


def test_no_goldens_at_all_are_unknown(house: House) -> None:
    folder = house.folder / "fixtures"
    (folder / GOLDENS).unlink()
    manifest = Manifest.open(folder)
    files = {name: entry for name, entry in manifest.files.items() if name != GOLDENS}
    Manifest(folder=folder, files=files, facts=manifest.facts).save()
    code, verdict, _ = house.replay("--groups", GROUP)
    assert code == 4
    assert verdict.startswith("verdict: unknown (no-golden: host sm_70 (")
    assert "the fixtures hold no goldens for it" in verdict and "--accept REASON" in verdict
