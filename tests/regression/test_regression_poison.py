"""Poison shows what was not written, and what was written beside."""

import torch

from regression import poison


def test_a_fresh_output_is_unwritten_everywhere_and_strayed_nowhere() -> None:
    output = poison.output((2, 3, 64), "cpu")
    assert output.unwritten() == 2 * 3 * 64
    assert output.strayed() == 0
    assert output.out.is_contiguous()
    assert output.out.data_ptr() % 16 == 0


def test_one_missing_element_is_counted() -> None:
    output = poison.output((2, 3, 64), "cpu")
    output.out.view(-1)[1:] = 0
    assert output.unwritten() == 1


def test_nan_as_the_contract_stores_it_is_not_poison() -> None:
    output = poison.output((2, 3, 64), "cpu")
    output.out.view(torch.int16).fill_(0x7FFF)
    assert output.unwritten() == 0


def test_a_write_before_or_after_the_output_is_seen() -> None:
    output = poison.output((2, 3, 64), "cpu")
    output.buffer[poison.GUARD_ELEMENTS - 1] = 0
    output.buffer[-1] = 0
    assert output.strayed() == 2


def test_partials_are_unwritten_until_they_are_written() -> None:
    tensor = poison.state((2, 3), "cpu")
    assert poison.unwritten_state(tensor) == 6
    tensor[0] = float("nan")
    assert poison.unwritten_state(tensor) == 3


def test_fill_overwrites_every_byte() -> None:
    tensor = torch.zeros(3, 5)
    poison.fill((tensor,))
    assert bool((tensor.view(torch.uint8) == 0xFF).all())
    assert bool(tensor.isnan().all())
