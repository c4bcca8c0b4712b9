"""The squared kernel error: the double sum, clusters, weights; and models compared by it."""

import numpy as np
import pytest

from calibrant import CalibrantError, compare, skce
from calibrant.data.classes import one_problem
from calibrant.measures.kernel import SquaredKernelError


def double_sum(y, p, w, bandwidth, cluster):
    """Return the sum of each row over the rows of other clusters, straight from the formula."""
    r = w * (y - p)
    kernel = np.exp(-np.abs(p[:, None] - p) / bandwidth) * (cluster[:, None] != cluster)
    return r * (kernel @ r)


def some_rows(n=200, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    return (rng.random(n) < p**1.3) * 1.0, p, rng.random(n) + 0.1


def test_by_hand():
    # Residuals 1/2, 1/2, -1/2 at one score: products 1/4, -1/4 and -1/4.
    assert skce([1, 1, 0], [0.5, 0.5, 0.5]) == pytest.approx(-1 / 12)
    near = np.exp(-0.25 / 0.1)
    assert skce([1, 1], [0.5, 0.75]) == pytest.approx(0.5 * 0.25 * near)


@pytest.mark.parametrize("bandwidth", [0.001, 0.01, 0.1, 1.0, 100.0])
def test_row_sums_are_those_of_all_pairs(bandwidth):
    y, p, w = some_rows()
    problem = one_problem(y, p, w, None, None, None)
    for cluster in (np.arange(200), np.arange(200) % 17):
        fast = SquaredKernelError(bandwidth).row_sums(problem, cluster)
        slow = double_sum(y, p, w, bandwidth, cluster)
        np.testing.assert_allclose(fast, slow, atol=1e-11)


def test_weights_and_classes():
    y, p, w = some_rows()
    total = double_sum(y, p, w, 0.1, np.arange(200)).sum()
    assert skce(y, p, sample_weight=w) == pytest.approx(total / (w.sum() ** 2 - w @ w))
    both = np.column_stack((1 - p, p))
    assert skce(y, both) == pytest.approx(skce(y, p))


def test_it_is_0_on_average_for_calibrated_predictions():
    rng = np.random.default_rng(1)
    p = rng.random(300)
    found = [skce(rng.random(300) < p, p) for _ in range(400)]
    assert abs(np.mean(found)) < 3 * np.std(found) / 20
    assert np.mean(np.array(found) < 0) > 0.4


def test_refusals():
    with pytest.raises(CalibrantError, match="two rows"):
        skce([1], [0.5])
    with pytest.raises(CalibrantError, match=r"bandwidth must be at least 0\.001"):
        skce([1, 0], [0.5, 0.2], bandwidth=1e-4)
    models = {"a": [0.5, 0.2, 0.4], "b": [0.4, 0.3, 0.4]}
    with pytest.raises(CalibrantError, match="sample_weight must not be all but in one row"):
        compare([1, 0, 1], models, measure="skce", sample_weight=[1e50, 1, 1])
    two = {name: p[:2] for name, p in models.items()}
    with pytest.raises(CalibrantError, match="differences of skce need at least three rows; got 2"):
        compare([1, 0], two, measure="skce")


class TestCompare:
    def test_the_standard_error_is_that_of_the_jackknife(self):
        y, p, w = some_rows()
        models = {"a": np.clip(p + 0.1, 0, 1), "b": p}
        pair = compare(y, models, measure="skce", sample_weight=w).pair("a", "b")
        without = []
        for row in range(200):
            kept = np.arange(200) != row
            values = [skce(y[kept], q[kept], sample_weight=w[kept]) for q in models.values()]
            without.append(values[0] - values[1])
        error = np.sqrt(199 / 200 * np.sum((without - np.mean(without)) ** 2))
        assert pair.high - pair.difference == pytest.approx(1.9719565 * error, rel=1e-6)

    def test_a_calibrated_model_is_never_worse(self):
        rng = np.random.default_rng(3)
        p = rng.random(300)
        y = (rng.random(300) < p) * 1
        pair = compare(y, {"a": p, "b": p**1.01}, measure="skce").pair("a", "b")
        assert pair.better is None

    def test_what_differs_is_found(self):
        rng = np.random.default_rng(5)
        p = rng.random(1500)
        y = (rng.random(1500) < p) * 1
        found = compare(y, {"high": np.sqrt(p), "right": p}, measure="skce")
        assert [model.name for model in found.models] == ["right", "high"]
        assert found.pair("high", "right").better == "right"
        group = np.repeat(np.arange(300), 5)
        assert (
            compare(*(y, {"high": np.sqrt(p), "right": p}), measure="skce", clusters=group)
            .pair("high", "right")
            .better
            == "right"
        )
