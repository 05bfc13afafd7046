"""The stored goldens: complete, vouched for, and this kernel's bits."""

from __future__ import annotations

import pytest

from fixtures import golden
from regression import judge, stored
from regression.replay import replay
from regression.selection import select
from regression.target import ARCHITECTURES, Target

STORED = ("sm_70", "sm_90")


@pytest.mark.parametrize("arch", STORED)
def test_every_group_has_one(arch: str) -> None:
    assert set(golden.available(arch)) == {group.id for group in select("all")}


@pytest.mark.parametrize("arch", STORED)
def test_it_is_written_down_which_kernel_gave_them_and_why(arch: str) -> None:
    provenance = golden.provenance(arch)
    assert len(provenance["code_digest"] or "") == 64
    assert len(stored.revision(arch) or "") == 40
    assert provenance["date"]


def test_the_kernel_gives_the_core_ones_bit_for_bit(kernel: Target) -> None:
    plays = replay(select("core"), kernel, stored.reader(kernel.arch), check_partials=True)
    judgement = judge.judge([play.result for play in plays], scope="core")
    assert judgement.word == "admitted", judgement.reasons
    assert "40 groups" in judgement.reasons[0].text


def test_an_architecture_without_goldens_has_none_to_give() -> None:
    (missing,) = set(ARCHITECTURES) - set(STORED)
    assert stored.reader(missing)("6x256-8k-00") is None
    assert stored.revision(missing) is None
