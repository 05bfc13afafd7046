"""The tensor-core models: silicon's results, special operands, refusals."""

from pathlib import Path

import numpy as np
import pytest

import grouped_attention as ga

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"
DEVICES = {"sm_70": "V100", "sm_80": "A100", "sm_90": "H200"}
GROUPS = {"sm_70": 4, "sm_80": 8, "sm_90": 16}
NAN_BITS = 0x7FFFFFFF


def bits(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint32)


def vectors(device: str) -> dict[str, np.ndarray]:
    with np.load(VECTORS / f"{device}_fp16_fp32.npz", allow_pickle=False) as file:
        return {
            "a": file["a"].view(np.float16),
            "b": file["b"].view(np.float16),
            "c": file["c"].view(np.float32),
            "d": file["d"],
        }


def one(arch: str, a: list[float], b: list[float], c: float = 0.0) -> int:
    """The bits of one product; operands are padded with zeros to K = 16."""
    rows = np.zeros((2, 1, 16), np.float16)
    rows[0, 0, : len(a)], rows[1, 0, : len(b)] = a, b
    return int(bits(ga.tensor_core.dot(rows[0], rows[1], np.float32([c]), arch))[0])


@pytest.mark.parametrize("arch", DEVICES)
def test_equals_silicon(arch: str) -> None:
    v = vectors(DEVICES[arch])
    assert v["a"].shape == (4000, GROUPS[arch])
    assert np.count_nonzero(bits(ga.tensor_core.dot(v["a"], v["b"], v["c"], arch)) != v["d"]) == 0


FAMILIES = (
    "normal",
    "subnormal",
    "query x key, c = 0",
    "probability x value",
    "residual x value/2048",
    "cancellation",
    "wide exponents",
    "sparse zeros",
    "all zero",
    "overflow",
    "infinity",
    "nan",
)


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_our_own_recording_of_an_h200(family: str) -> None:
    v = vectors("H200_families")
    with np.load(VECTORS / "H200_families_fp16_fp32.npz", allow_pickle=False) as file:
        assert tuple(file["families"]) == FAMILIES
        chosen = file["family"] == FAMILIES.index(family)
    assert np.count_nonzero(chosen) == 416
    found = ga.tensor_core.dot(v["a"][chosen], v["b"][chosen], v["c"][chosen], "sm_90")
    assert np.count_nonzero(bits(found) != v["d"][chosen]) == 0


@pytest.mark.parametrize(("model", "device"), [("sm_70", "A100"), ("sm_80", "H200"), ("sm_70", "H200")])
def test_another_model_does_not(model: str, device: str) -> None:
    v = vectors(device)
    assert np.count_nonzero(bits(ga.tensor_core.dot(v["a"], v["b"], v["c"], model)) != v["d"]) > 100


@pytest.mark.parametrize("arch", ["sm_86", "sm_89"])
def test_later_ampere_and_ada_share_a_model(arch: str) -> None:
    v = vectors("A100")
    assert (bits(ga.tensor_core.dot(v["a"], v["b"], v["c"], arch)) == v["d"]).all()


@pytest.mark.parametrize("arch", DEVICES)
def test_long_products_chain_groups_in_order(arch: str) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((500, 48)).astype(np.float16) for _ in range(2))
    expected = rng.standard_normal(500).astype(np.float32)
    whole = ga.tensor_core.dot(a, b, expected, arch)
    for k in range(0, 48, GROUPS[arch]):
        group = slice(k, k + GROUPS[arch])
        expected = ga.tensor_core.dot(a[:, group], b[:, group], expected, arch)
    assert (bits(whole) == bits(expected)).all()


@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        ([np.inf], [1.0], 0.0, 0x7F800000),
        ([np.inf], [-2.0], 5.0, 0xFF800000),
        ([1.0], [1.0], -np.inf, 0xFF800000),
        ([np.inf], [0.0], 0.0, NAN_BITS),
        ([np.inf, np.inf], [1.0, -1.0], 0.0, NAN_BITS),
        ([np.inf], [1.0], -np.inf, NAN_BITS),
        ([np.nan], [0.0], 0.0, NAN_BITS),
        ([1.0], [1.0], np.nan, NAN_BITS),
        ([0.0], [-1.0], 0.0, 0),
        ([0.0], [1.0], -0.0, 0),
        ([1.0, 1.0], [1.0, -1.0], 0.0, 0),
        ([2.0**-24], [2.0**-24], 0.0, 0x27800000),
        ([0.0], [0.0], 2.0**-149, 1),
    ],
)
def test_special_operands(arch: str, a: list[float], b: list[float], c: float, expected: int) -> None:
    assert one(arch, a, b, c) == expected


@pytest.mark.parametrize("arch", DEVICES)
def test_what_is_far_below_an_accumulator_is_dropped(arch: str) -> None:
    top = float(np.finfo(np.float32).max)
    assert one(arch, [65504.0] * 16, [65504.0] * 16, top) == 0x7F7FFFFF
    assert one(arch, [65504.0] * 16, [-65504.0] * 16, top) == 0x7F7FFFFF


@pytest.mark.parametrize(("arch", "kept"), [("sm_70", 23), ("sm_80", 24), ("sm_90", 25)])
def test_terms_are_cut_at_the_fraction_bits(arch: str, kept: int) -> None:
    """Beside a term of exponent 0, three of 2^-(kept + 1) give nothing, three of 2^-kept give just that."""
    small = 2.0 ** -(kept - 12)
    terms = [2.0**-12] * 3

    def total(term: float) -> float:
        # c = -1 cancels the 1, so that what is left of the small terms can be seen.
        product = np.uint32(one(arch, [1.0, *terms], [1.0, *[term] * 3], -1.0))
        return float(product.view(np.float32))

    assert total(small / 2) == 0.0
    assert total(small) == 3 * 2.0**-kept


def test_refusals() -> None:
    a, c = np.zeros((2, 16), np.float16), np.zeros(2, np.float32)
    with pytest.raises(TypeError, match="b must be a numpy array of float16"):
        ga.tensor_core.dot(a, a.astype(np.float32), c, "sm_70")
    with pytest.raises(ValueError, match=r"\[n, K\]"):
        ga.tensor_core.dot(a, a, np.zeros(3, np.float32), "sm_70")
    with pytest.raises(ValueError, match="K must be a multiple of 16, got 8"):
        ga.tensor_core.dot(a[:, :8], a[:, :8], c, "sm_90")
    with pytest.raises(ValueError, match="no library for 'host', 'sm_75'"):
        ga.tensor_core.dot(a, a, c, "sm_75")


def test_takes_no_rows_and_strided_rows() -> None:
    empty = np.zeros((0, 16), np.float16)
    assert ga.tensor_core.dot(empty, empty, np.zeros(0, np.float32), "sm_70").shape == (0,)
    a = np.ones((4, 32), np.float16)
    assert (ga.tensor_core.dot(a[::2, ::2], a[::2, ::2], np.zeros(2, np.float32), "sm_70") == 16).all()
