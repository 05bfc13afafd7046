"""Negative controls: each earlier arithmetic, planted in a copy, is caught where the kernel itself passes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from fixtures import cases, faults
from grouped_attention.build import build, default_store
from regression import contract, judge, locate
from regression.replay import play
from regression.selection import select_one
from regression.target import Target, from_path

ROOT = Path(__file__).resolve().parents[2]
GROUP = "6x256-8k-10"


@dataclass(frozen=True, kw_only=True)
class Control:
    """Where one fault shows: the case whose gate it breaks, the partials' error that it is known for, the
    first quantity that it changes, and the token where it begins, if that follows from the fault alone.
    """

    fault: str
    arch: str
    case: str
    error: tuple[float, float] = (0.0, 1.0)
    quantity: str = "numerator"
    token: int | None = None

    @property
    def id(self) -> str:
        return f"{self.fault}-{self.arch}"


CONTROLS = (
    Control(
        fault="carried-accumulator", arch="sm_70", case="biased-v-128k-3x64", error=(1.5e-5, 4e-5), token=32
    ),
    Control(
        fault="carried-accumulator", arch="sm_90", case="biased-v-256k-3x64", error=(6e-6, 1.2e-5), token=32
    ),
    Control(fault="half-probabilities", arch="sm_70", case="q-offset-4-6x256"),
    Control(fault="unscaled-residual", arch="sm_70", case="small-residual-one-3x64", error=(2.2e-5, 2.4e-5)),
    Control(fault="normalised-partials", arch="sm_70", case="midpoint-128k-3x64", quantity="max", token=1),
    Control(fault="normalised-partials", arch="sm_90", case="midpoint-160k-3x64", quantity="max", token=1),
)


@dataclass(frozen=True, kw_only=True)
class Pair:
    """The faulty kernel and the one that it was planted in."""

    control: Control
    faulty: Target
    sound: Target


@pytest.fixture(scope="module", params=CONTROLS, ids=lambda control: control.id)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Both kernels, built from this checkout; the faulty one into a store of its own, kept between runs."""
    control: Control = request.param
    source, workdir = ROOT / "kernels", tmp_path_factory.mktemp("control")
    store = default_store().with_name("faults")
    fault = faults.find(control.fault)
    faulty = faults.build(fault, source, workdir, backend="host", arch=control.arch, store=store)
    sound = build(source, backend="host", arch=control.arch, store=default_store())
    return Pair(control=control, faulty=from_path(faulty.directory), sound=from_path(sound.directory))


def test_its_case_catches_it_and_passes_the_kernel(pair: Pair) -> None:
    case = cases.build(pair.control.case)
    assert contract.check(case, pair.sound) == ()
    broken = {violation.gate for violation in contract.check(case, pair.faulty)}
    wanted = set(faults.find(pair.control.fault).gates) - {"replay", "emulated"}
    assert wanted
    assert wanted <= broken


def test_its_error_is_the_known_one(pair: Pair) -> None:
    least, most = pair.control.error
    inputs = cases.build(pair.control.case).inputs
    assert least <= contract.partial_error(inputs, pair.faulty) <= most
    assert contract.partial_error(inputs, pair.sound) < 3e-6


def test_a_replay_catches_it(pair: Pair) -> None:
    assert "replay" in faults.find(pair.control.fault).gates
    group = select_one(GROUP)
    golden = play(group, pair.sound, None, check_partials=True).fresh
    for kernel, word in ((pair.sound, "admitted"), (pair.faulty, "rejected")):
        result = play(group, kernel, golden, check_partials=True).result
        assert judge.judge([result], scope="control").word == word


def test_locate_names_the_quantity_that_it_changes(pair: Pair) -> None:
    finding = locate.find(GROUP, pair.faulty, against=pair.sound.extension.library)
    assert finding.reference is not None
    assert finding.reference.trusted
    assert finding.divergence is not None
    assert (finding.divergence.quantity, finding.divergence.split) == (pair.control.quantity, 0)
    assert finding.token is not None
    assert pair.control.token in (None, finding.token)
    assert {row for split, row in finding.places if split == 0} == set(range(finding.group.rows))


def test_half_probabilities_are_over_the_budget_on_real_inputs(pair: Pair) -> None:
    result = play(select_one(GROUP), pair.faulty, None, check_partials=False).result
    assert result.accuracy.within == (pair.control.fault != "half-probabilities")


def test_every_fault_that_names_a_gate_of_the_contract_has_a_control() -> None:
    ours = set(contract.GATES)
    wanted = {fault.name for fault in faults.catalogue(backend="host") if ours & set(fault.gates)}
    assert wanted == {control.fault for control in CONTROLS}


def test_every_patch_still_applies(tmp_path: Path) -> None:
    for fault in faults.catalogue():
        faults.plant(fault, ROOT / "kernels", tmp_path / fault.name)
