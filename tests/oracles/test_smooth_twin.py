"""The smooth family against direct sums and numerical integration."""

import tracemalloc

import numpy as np
import pytest

from calibrant import CalibrantError, density_ece, logit_smoothed_ece, smooth_ece
from calibrant.numerics import smoothing
from tests.twins import smooth as twin

# Every shape that could trip the cells, the series or the search.
SHAPES = {
    "uniform": lambda rng, n: rng.random(n),
    "one point": lambda rng, n: np.full(n, 0.3),
    "at 0": lambda rng, n: np.zeros(n),
    "at 1": lambda rng, n: np.ones(n),
    "both ends": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "two points": lambda rng, n: rng.choice([0.42, 0.43], n),
    "tenths": lambda rng, n: rng.integers(0, 11, n) / 10,
    "confident": lambda rng, n: 1 - 0.05 * rng.random(n) ** 3,
    "near 0": lambda rng, n: rng.random(n) ** 5,
    "cell edges": lambda rng, n: rng.integers(0, 65, n) / 64,
}


def sample(shape, n, seed, soft=False):
    rng = np.random.default_rng([seed, n, len(shape)])
    p = SHAPES[shape](rng, n)
    y = rng.random(n) if soft else (rng.random(n) < p**1.5).astype(float)
    return y, p, rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 7, 90])
@pytest.mark.parametrize("soft", [False, True])
def test_fixed_point(shape, n, soft):
    if soft and shape == "both ends":
        pytest.skip("soft labels with forecasts of 0 and 1 look like swapped arguments")
    y, p, w = sample(shape, n, 1, soft)
    assert smooth_ece(y, p) == pytest.approx(twin.smooth_fixed_point(y, p), abs=1e-9)
    assert smooth_ece(y, p, sample_weight=w) == pytest.approx(
        twin.smooth_fixed_point(y, p, w), abs=1e-9
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("s", [0.004, 0.03, 0.2, 1.0, 7.0])
def test_given_bandwidth(shape, s):
    y, p, w = sample(shape, 90, 2)
    value = smooth_ece(y, p, sample_weight=w, bandwidth=s)
    assert value == pytest.approx(twin.smooth_error(y, p, w, s), abs=1e-10)


@pytest.mark.parametrize("n_moments", [4, 8])
@pytest.mark.parametrize("shape", ["uniform", "tenths", "confident", "near 0", "cell edges"])
def test_every_number_of_moments(monkeypatch, n_moments, shape):
    def resolution(n, scale):
        return smoothing._n_cells(n_moments, scale), n_moments

    monkeypatch.setattr(smoothing, "resolution", resolution)
    y, p, w = sample(shape, 80, 3)
    value = smooth_ece(y, p, sample_weight=w)
    assert value == pytest.approx(twin.smooth_fixed_point(y, p, w), abs=1e-9)


def corners(n=40):
    """Rows (y, p) that leave nearly all of [0, 1] empty at the scale of their error."""
    rng = np.random.default_rng(11)
    y, u = rng.integers(0, 2, n).astype(float), rng.random(n)
    near = np.where(y == 1, 1 - 1e-6 * u, 1e-6 * u)
    close = 0.5 + 1e-5 * (u - 0.5)
    spread = rng.random(n)
    pairs = np.repeat(np.arange(1, n // 2 + 1) / (n // 2 + 1), 2) + np.tile([0, 2e-4], n // 2)
    sign = np.tile([1.0, -1.0], n // 2)
    two = np.where(np.arange(n) // 2 % 2, 0.5, 0.5 + 1e-7)
    return {
        "near 0 and 1": (y, near),
        "near 0 and 1, one wrong": (np.append(1 - y[:1], y[1:]), near),
        "near 0 and 1, soft": (np.clip(near + 1e-6 * u * rng.uniform(-1, 1, n), 0, 1), near),
        "close together": (y, close),
        "close together, soft": (close + 1e-6 * rng.uniform(-1, 1, n), close),
        "two scores": (np.arange(n) % 2.0, two),
        "two scores, soft": (np.array([0.5 + 1e-7, 0.5 - 9e-8]), np.array([0.5, 0.5 + 1e-8])),
        "close pairs": (pairs + 3e-4 * sign * np.minimum(pairs, 1 - pairs), pairs),
        "spread, soft": (spread + 1e-4 * spread * (1 - spread) * rng.uniform(-1, 1, n), spread),
    }


@pytest.mark.parametrize("name", corners())
def test_fixed_points_in_the_corners(name):
    y, p = corners()[name]
    w = np.random.default_rng(12).uniform(0.5, 2, len(y))
    for weight in (None, w):
        value = smooth_ece(y, p, sample_weight=weight)
        # The error falls as the scale grows, so that this bounds the distance from the one scale
        # that it is equal to. Scores near 1 are known to 1e-16, a billionth of 1e-7.
        assert twin.smooth_error(y, p, weight, value) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("name", corners())
@pytest.mark.parametrize("s", [1e-9, 1e-7, 1e-6, 3e-5])
def test_tiny_bandwidths(name, s):
    y, p = corners()[name]
    # Where residuals cancel, what is left is known relative to what there was.
    slack = 1e-9 * np.mean(np.abs(y - p))
    value = smooth_ece(y, p, bandwidth=s)
    assert value == pytest.approx(twin.smooth_error(y, p, None, s), abs=slack)


@pytest.mark.parametrize("name", ["near 0 and 1", "close together", "two scores", "spread, soft"])
@pytest.mark.parametrize("s", [1e-8, 1e-5])
def test_tiny_bandwidths_of_densities_and_logits(name, s):
    y, p = corners()[name]
    u = np.log(p / (1 - p))
    share = np.full(len(y), 1 / len(y))
    for value, expected in (
        (density_ece(y, p, bandwidth=s), twin.density_error(y, p, None, s, "gaussian")),
        (logit_smoothed_ece(y, p, sigma=s), twin.logit_smoothed_error(u, y, share, s)),
        (logit_smoothed_ece(y, logits=u, sigma=s), twin.logit_smoothed_error(u, y, share, s)),
        (
            smooth_ece(y, p, scale="logit", bandwidth=s),
            twin.line_error(u, (y - p) * share, s),
        ),
    ):
        assert value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("h", [1e-6, 1e-4])
def test_narrow_triweights(h):
    y, p = corners()["close together"]
    value = density_ece(y, p, bandwidth=h, kernel="triweight")
    # The triweight's transform falls slowly; what is cut off is below 1e-6.
    assert value == pytest.approx(twin.density_error(y, p, None, h, "triweight"), abs=1e-6)


@pytest.mark.parametrize("name", corners(450))
@pytest.mark.parametrize("measure", [smooth_ece, density_ece, logit_smoothed_ece])
def test_memory_in_the_corners(name, measure):
    y, p = corners(450)[name]
    tracemalloc.start()
    measure(y, p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A third of a gigabyte and more where all of [0, 1] is resolved.
    assert peak < 1e8


def test_logits_very_far_apart():
    # As good as at infinity, where noise does not move them.
    far, infinite = (logit_smoothed_ece([1, 0], logits=[0, u], sigma=9) for u in (1e9, np.inf))
    assert far == pytest.approx(infinite, abs=1e-9)


def test_scales_too_fine_for_very_many_scores():
    p = np.linspace(0, 1, 20_001)
    y = np.arange(20_001) % 2
    # Apart from each other scores are not smoothed at all.
    assert smooth_ece(y, p, bandwidth=1e-9) == pytest.approx(0.5, abs=1e-4)
    for call, sentence in (
        (lambda: smooth_ece(y, p, bandwidth=3e-6), r"bandwidth must be at least 7\.6e-06"),
        (lambda: density_ece(y, p, bandwidth=3e-6), r"bandwidth must be at least 7\.6e-06"),
        (lambda: logit_smoothed_ece(y, p, sigma=1e-5), r"sigma must be at least \S+ for"),
        (lambda: logit_smoothed_ece(y, p, sigma=1e5), r"sigma must be at most 7\.28e\+03 for"),
    ):
        with pytest.raises(CalibrantError, match=sentence):
            call()


@pytest.mark.parametrize("n", [3, 40])
def test_tiny_fixed_points_are_exact_where_scores_are_apart(n):
    p = np.arange(1, n + 1) / (n + 1)
    y = p + np.random.default_rng(n).uniform(-1, 1, n) * 1e-7
    assert smooth_ece(y, p) == pytest.approx(np.mean(np.abs(y - p)), rel=1e-9)


def test_fixed_points_below_the_finest_scale():
    p = np.linspace(0, 1, 20_001)
    r = np.where(np.arange(20_001) % 2, 1e-4, -1e-4) * p * (1 - p)
    value = smooth_ece(p + r, p)
    assert 0 < value < np.mean(np.abs(r)) < 8e-5


@pytest.mark.parametrize("shape", ["uniform", "confident", "tenths", "both ends"])
@pytest.mark.parametrize("bandwidth", [None, 0.05, 1.5])
def test_logit_scale(shape, bandwidth):
    y, p, w = sample(shape, 80, 4)
    r = w * (y - p) / w.sum()
    inside = (p > 0) & (p < 1)
    beyond = abs(r[p == 0].sum()) + abs(r[p == 1].sum())

    def error(s):
        if not inside.any():
            return beyond
        return beyond + twin.line_error(np.log(p / (1 - p))[inside], r[inside], s)

    with np.errstate(divide="ignore"):
        value = smooth_ece(y, p, sample_weight=w, scale="logit", bandwidth=bandwidth)
        assert value == pytest.approx(error(bandwidth or value), abs=1e-9)


def test_any_increasing_scale():
    y, p, _ = sample("uniform", 70, 5)
    value = smooth_ece(y, p, scale=lambda q: 3 * q - 1, bandwidth=0.3)
    assert value == pytest.approx(twin.line_error(3 * p - 1, (y - p) / 70, 0.3), abs=1e-10)
    for bad in (lambda q: -q, lambda q: q * np.nan, lambda q: 1.0, lambda q: "high"):
        with pytest.raises(CalibrantError, match="returns increasing numbers"):
            smooth_ece(y, p, scale=bad)
    assert smooth_ece(y, p, scale=lambda q: 1e9 * q) == pytest.approx(np.mean(np.abs(y - p)))
    dense = np.linspace(0.4, 0.6, 100_000)
    noise = np.where(np.arange(100_000) % 2, 1e-4, -1e-4)
    with pytest.raises(CalibrantError, match="must not spread scores so far"):
        smooth_ece(dense + noise, dense, scale=lambda q: 100 * q)


def test_neighbouring_doubles_on_the_logit_scale():
    p = np.array([0.7, np.nextafter(0.7, 1), 0.2])
    assert smooth_ece([1, 0, 1], p, scale="logit") > 0


@pytest.mark.parametrize("sigma", [0.05, 0.4, 3.0])
@pytest.mark.parametrize("soft", [False, True])
def test_logit_smoothed(sigma, soft):
    y, p, w = sample("near 0", 100, 6, soft)
    u = np.log(p / (1 - p))
    exact = twin.logit_smoothed_error(u, y, w / w.sum(), sigma)
    assert logit_smoothed_ece(y, p, sample_weight=w, sigma=sigma) == pytest.approx(exact, abs=1e-9)
    by_logits = logit_smoothed_ece(y, logits=u, sample_weight=w, sigma=sigma)
    assert by_logits == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("shape", ["uniform", "tenths", "both ends", "one point"])
@pytest.mark.parametrize("sigma", [0.1, 2.0])
def test_uniform_noise_is_exact(shape, sigma):
    y, p, w = sample(shape, 50, 7)
    inside = (p > 0) & (p < 1)
    share = w / w.sum()
    beyond = (share * y)[p == 0].sum() + (share * (1 - y))[p == 1].sum()
    expected = beyond
    if inside.any():
        u = np.log(p[inside] / (1 - p[inside]))
        expected += twin.uniform_logit_smoothed_error(u, y[inside], share[inside], sigma)
    value = logit_smoothed_ece(y, p, sample_weight=w, sigma=sigma, noise="uniform")
    assert value == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
@pytest.mark.parametrize("h", [0.02, 0.1, 0.8])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.25, 1.0)])
@pytest.mark.parametrize("shape", ["uniform", "tenths", "confident"])
def test_density(kernel, h, bounds, shape):
    y, p, w = sample(shape, 60, 8)
    p = np.maximum(p, bounds[0])
    exact = twin.density_error(y, p, w, h, kernel, *bounds)
    value = density_ece(y, p, sample_weight=w, bandwidth=h, kernel=kernel, bounds=bounds)
    # The triweight's transform falls slowly; what is cut off is below 1e-6.
    assert value == pytest.approx(exact, abs=1e-9 if kernel == "gaussian" else 1e-6)


@pytest.mark.parametrize(
    ("p", "w"),
    [
        (
            [0, 0.9428004715485069, 0.3],
            [0.2064675325423678, 0.7561165962466646, 0.037415871210967566],
        ),
        (
            [0, 0.9499760334974526, 0.3],
            [0.04758346770464804, 0.48049740900642235, 0.4719191232889296],
        ),
    ],
)
def test_a_zero_that_comes_or_goes_at_the_fixed_point(p, w):
    # There the slope of the norm has a root's bend, and Newton's steps gain fewer digits.
    y = [1, 0, 0.3]
    expected = twin.smooth_fixed_point(y, p, w)
    assert smooth_ece(y, p, sample_weight=w) == pytest.approx(expected, abs=3e-10)
