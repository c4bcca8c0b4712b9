"""What no function can answer is refused in one sentence, whatever the argument and the value."""

import inspect
import math
import pickle
from fractions import Fraction
from importlib.util import find_spec

import numpy as np
import pytest

import calibrant as cb
from tests.tolerances import nearly

RNG = np.random.default_rng(0)
N = 12
P = np.array([0.1, 0.2, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 0.95])
Y = np.array([0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 1])
SITE = np.arange(N) % 3
P3 = RNG.dirichlet([1, 1, 1], N)
# What a function needs beside outcomes and probabilities, and few resamples where it draws some.
NEEDED = {
    "by_group": {"groups": SITE},
    "bias_along": {"feature": SITE},
    "compare": {"y_prob": {"a": P, "b": P**2}},
    "estimate": {"measure": "ece"},
    "heterogeneity": {"centre": SITE},
    "sample_size": {"measure": "slope", "width": 0.5},
    "error_bound": {"sketch": cb.Sketch(60).update(Y, P)},
    "subpopulation_curve": {"group": SITE == 0},
    "subpopulation_test": {"group": SITE == 0},
    "threshold_regret": {"threshold": 0.4},
}
PER_ROW = ("groups", "feature", "centre", "group")
# A report needs plotly and jinja2.
NOT_OF_ROWS = {"sketch"} | ({"report"} if find_spec("plotly") is None else set())
FUNCTIONS = [
    name for name in cb.__all__ if inspect.isfunction(getattr(cb, name)) and name not in NOT_OF_ROWS
]


def parameters(name):
    return inspect.signature(getattr(cb, name)).parameters


def with_parameter(*wanted):
    return [name for name in FUNCTIONS if set(wanted) <= set(parameters(name))]


def call(name, **given):
    """Call a function of calibrant with arguments that it takes, but for those given."""
    known = parameters(name)
    usual = {"y_true": Y, "y_prob": P, "n_resamples": 39} | NEEDED.get(name, {})
    return getattr(cb, name)(**{k: v for k, v in usual.items() if k in known} | given)


def outcome(name, **given):
    """Return the sentence of a refusal, or nothing; any other exception is a failure."""
    try:
        call(name, **given)
    except cb.CalibrantError as problem:
        said = str(problem)
        sent = pickle.dumps(problem)
    else:
        return ""
    # Whatever was given, an error can be sent to another process.
    assert str(pickle.loads(sent)) == said
    return said


# Any argument of any function.

HOSTILE = [
    *(None, True, "false", "", b"x", math.nan, math.inf, 0, -1, 0.5, 3, 1e300, 10**400, -(10**400)),
    *(1j, [], (), {}, {1}, [None], [[1, 2], [3]], object(), int, len, range(3), Fraction(1, 3)),
    *(np.float32(0.1), np.float16(2), np.longdouble(0.3), np.int8(7), np.uint64(50), np.array(3)),
    *(np.ones(N), np.ones(N - 1), np.ones((N, 1)), np.ones((N, 2)), np.ones((N, 1, 1))),
    *(np.zeros(N), -np.ones(N), np.full(N, math.nan), np.full(N, 1e308), np.full(N, 5e-324)),
    *(np.r_[1.0, np.full(N - 1, 5e-324)], np.ones(0), np.ones((0, 3)), np.ones(N) * 1j),
    *(np.array([None] * N), np.array([object()] * N), np.array(["a", "b"] * (N // 2))),
    *(np.arange(N), np.arange(N) % 2 == 0, np.arange(N).astype("M8[D]"), np.random.default_rng(0)),
    *(("a", "b"), cb.Sketch(60).update(Y, P)),
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_value_of_any_argument_is_taken_or_refused_in_one_sentence(name):
    for parameter, declared in parameters(name).items():
        # Texts are paths of files to write.
        if declared.kind is declared.VAR_KEYWORD or parameter == "path":
            continue
        for value in HOSTILE:
            sentence = outcome(name, **{parameter: value})
            assert "\n" not in sentence
            assert len(sentence) < 500


EDGES = {
    "one row": ([1], [0.5]),
    "two rows": ([0, 1], [0.4, 0.4]),
    "equal scores": (Y, np.full(N, 0.3)),
    "all 0": (np.zeros(N), P),
    "all 1": (np.ones(N), P),
    "predictions of 0": (Y, np.zeros(N)),
    "predictions of 1": (Y, np.ones(N)),
    "certain and right": (Y, Y.astype(float)),
    "certain and wrong": (Y, 1.0 - Y),
    "soft and right": (P, P),
    "soft": (np.full(N, 0.5), P),
    "next to 0": (Y, P * 1e-300),
    "the least double": (Y, np.full(N, 5e-324)),
    "next to 1": (Y, np.full(N, 1 - 2**-53)),
    "two columns": (Y, np.column_stack((1 - P, P))),
    "three classes": (np.arange(N) % 3, P3),
    "empty": ([], []),
    "missing": (None, None),
}


@pytest.mark.parametrize("name", with_parameter("y_true", "y_prob"))
def test_the_least_and_the_strangest_rows_are_measured_or_refused(name):
    for y_true, y_prob in EDGES.values():
        n = 0 if y_true is None else len(y_true)
        rows = {k: v[:n] for k, v in NEEDED.get(name, {}).items() if isinstance(v, np.ndarray)}
        assert "\n" not in outcome(name, y_true=y_true, y_prob=y_prob, **rows)


# Counts.


@pytest.mark.parametrize("name", with_parameter("n_resamples"))
@pytest.mark.parametrize("n_resamples", [1, 38, 0, -5, 39.0, True, "many", None])
def test_too_few_resamples_for_an_interval_or_a_p_value(name, n_resamples):
    sentence = outcome(name, n_resamples=n_resamples)
    assert "n_resamples must be a whole number of at least 39" in sentence
    assert outcome(name, n_resamples=np.int64(39)) == ""


@pytest.mark.parametrize("name", with_parameter("n_resamples"))
@pytest.mark.parametrize("n_resamples", [10**20, 10**400])
def test_more_resamples_than_memory(name, n_resamples):
    assert "n_resamples must be at most 10000000; got 1000" in outcome(
        name, n_resamples=n_resamples
    )


def test_the_least_number_of_resamples_gives_an_interval():
    found = cb.estimate("ece", Y, P, n_resamples=39)
    assert found.high - found.low > 0.01


def test_a_high_level_has_as_many_draws_as_its_quantiles_need():
    rows = cb.datasets.simulate("overconfident", 500, rng=0)
    # Of 39 draws, both would have the least and the greatest for their ends.
    high, higher = (
        cb.estimate("ecce_r", *rows, n_resamples=39, level=level) for level in (0.99, 0.9999)
    )
    assert higher.high > high.high


@pytest.mark.parametrize("name", with_parameter("n_bins"))
@pytest.mark.parametrize("n_bins", [1_000_001, 10**20, 10**400])
def test_more_bins_than_memory(name, n_bins):
    assert "n_bins must be at most 1000000; got" in outcome(name, n_bins=n_bins)


def test_other_counts_have_limits():
    with pytest.raises(cb.CalibrantError, match=r"n_cells must be at most 2097152; got 1000"):
        cb.Sketch(10**400)
    with pytest.raises(cb.CalibrantError, match=r"n must be at most 1000000000; got 1000"):
        cb.datasets.simulate("perfect", 10**20)
    # Python itself writes no number of more than 4300 digits.
    with pytest.raises(cb.CalibrantError, match="n_bins must be at most 1000000; got int too long"):
        cb.ece(Y, P, n_bins=10**5000)


# Numbers.


@pytest.mark.parametrize("name", with_parameter("bandwidth"))
def test_a_bandwidth_is_any_kind_of_number(name):
    def values(bandwidth):
        found = call(name, bandwidth=bandwidth)
        return found if isinstance(found, float) else found.y

    for kind in (np.float64, np.longdouble, Fraction):
        np.testing.assert_array_equal(values(kind(0.25)), values(0.25))
    for kind in (np.float32, np.float16):
        np.testing.assert_array_equal(values(kind(0.1)), values(float(kind(0.1))))
    np.testing.assert_array_equal(values(np.int8(1)), values(1.0))


@pytest.mark.parametrize("bandwidth", [1e300, 10**20, 10**400, math.inf])
def test_a_bandwidth_has_a_maximum(bandwidth):
    for name in with_parameter("bandwidth"):
        assert "bandwidth must be at most 1e+06; got" in outcome(name, bandwidth=bandwidth)
    assert "sigma must be at most 1e+06" in outcome("logit_smoothed_ece", sigma=bandwidth)
    # Long before that, all is smoothed into the mean.
    assert cb.smooth_ece(Y, P, bandwidth=1e6) == pytest.approx(abs(np.mean(Y - P)), abs=1e-12)


@pytest.mark.parametrize("name", with_parameter("level"))
def test_a_level_lies_between_0_and_1(name):
    for level in (95, 1, 10**20, 10**400, math.inf):
        assert "level must lie between 0 and 1; got" in outcome(name, level=level)
    for level in (0, -1, math.nan, "0.95", True, None, -(10**400)):
        assert "level must be a positive number; got" in outcome(name, level=level)
    assert outcome(name, level=np.float32(0.9)) == ""


# Flags.


@pytest.mark.parametrize(
    ("name", "flag"),
    [
        (name, flag)
        for flag in ("debias", "fitted", "normalize", "simultaneous", "standardize", "unbiased")
        for name in with_parameter(flag)
    ],
)
@pytest.mark.parametrize("value", ["false", "no", "", 0, 1, None, [], np.ones(2)])
def test_flags_are_true_or_false(name, flag, value):
    assert f"{flag} must be True or False; got" in outcome(name, **{flag: value})


@pytest.mark.parametrize(
    ("flag", "asked"),
    [
        ("mix", lambda value: cb.recalibration.recalibrate(Y, P, mix=value)),
        ("ends", lambda value: cb.recalibration.IdentityCalibrator(ends=value).fit(P, Y)),
        ("deviation", lambda value: cb.plot.reliability(Y, P, deviation=value)),
        ("deviation", lambda value: cb.plot.bias_along(Y, P, SITE, deviation=value)),
    ],
)
@pytest.mark.parametrize("value", ["false", "no", 0, 1])
def test_flags_of_recalibration_and_pictures(flag, asked, value):
    if flag != "deviation":
        pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")
    with pytest.raises(cb.CalibrantError, match=f"{flag} must be True or False; got"):
        asked(value)


def test_numpy_has_flags_too():
    assert cb.ecce_r(Y, P, normalize=np.True_) == cb.ecce_r(Y, P, normalize=True)
    assert cb.ecce_r(Y, P, normalize=np.False_) == cb.ecce_r(Y, P)


# Options of measures that are given to another function.


def test_an_unknown_option_is_named_with_the_nearest():
    sentence = "ece has no option 'n_bin'; there are: n_bins, .*: did you mean 'n_bins'?"
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.estimate("ece", Y, P, n_bin=9)
    with pytest.raises(cb.CalibrantError, match=r"has no option 'xyz'; there are: n_bins[^:]*$"):
        cb.estimate("ece", Y, P, xyz=9)


# Weights.

HEAVY = RNG.gamma(2, 1, N)


@pytest.mark.parametrize("name", with_parameter("sample_weight"))
@pytest.mark.parametrize("weight", [1e101, 1e160, 1e-101, 1e-139, 5e-324])
def test_weights_have_a_range(name, weight):
    sentence = outcome(name, sample_weight=np.r_[np.ones(N - 1), weight])
    assert (
        f"sample_weight must be 0 or from 1e-100 to 1e+100; got {weight!r} at index 11" in sentence
    )
    assert sentence.endswith("rescale all weights, and set those that are negligible to 0")


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "u8", "?", "g"])
def test_weights_of_any_dtype_are_in_range(dtype):
    weight = np.array([1, 0, 1] * 4).astype(dtype)
    assert cb.ece(Y, P, sample_weight=weight) == nearly(cb.ece(Y[weight > 0], P[weight > 0]))


def numbers(found):
    """Return all numbers of a result, but for the weight itself."""
    if isinstance(found, dict):
        return [n for key, value in found.items() if key != "weight" for n in numbers(value)]
    if isinstance(found, list | tuple):
        return [n for value in found for n in numbers(value)]
    if isinstance(found, np.ndarray):
        return found.ravel().tolist()
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    return [float(found)] if is_number else []


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in with_parameter("sample_weight") if name != "report"),
        ("reliability_curve", {"simultaneous": True}),
        ("reliability_curve", {"simultaneous": True, "clusters": np.arange(N) % 10}),
        ("reliability_curve", {"method": "isotonic", "band": "consistency"}),
        ("estimate", {"clusters": np.arange(N) % 10}),
        ("estimate", {"norm": "l2"}),
        ("cumulative_test", {"method": "monte_carlo"}),
    ],
)
@pytest.mark.parametrize("scale", [2.0**-326, 2.0**326])
def test_the_scale_of_weights_changes_nothing(name, options, scale):
    # Powers of two, so that not a bit changes but in the exponent; to the ends of the range.
    given = options if name == "compare" else {"y_prob": np.clip(P, 0.05, 0.99), **options}
    usual, scaled = (call(name, sample_weight=w, **given) for w in (HEAVY, HEAVY * scale))
    if not isinstance(usual, float):
        usual, scaled = usual.to_dict(), scaled.to_dict()
    np.testing.assert_allclose(numbers(scaled), numbers(usual), rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("name", with_parameter("sample_weight"))
def test_one_row_may_outweigh_all_others(name):
    # So far that the weights of the others are lost in the sum.
    rng = np.random.default_rng(0)
    p, weight = rng.random(200), rng.gamma(2, 1, 200)
    y = (rng.random(200) < p).astype(int)
    rows = {k: np.resize(v, 200) for k, v in NEEDED.get(name, {}).items() if k in PER_ROW}
    rows |= {"measures": ["smooth_ece"]} if name == "noise_floor" else {}
    for score, heaviest in ((0.06, 1e17), (0.06, 1e20), (0.5, 1e20), (0.9999, 1e90)):
        p[:2], y[:2], weight[:2] = score, (0, 1), (heaviest, heaviest / 20)
        rows |= {"y_true": y, "y_prob": {"a": p, "b": p**2} if name == "compare" else p}
        given = {k: v for k, v in rows.items() if k in parameters(name)}
        assert "\n" not in outcome(name, sample_weight=weight, **given)


def test_a_kernel_error_needs_weight_in_two_rows():
    weight = np.r_[1e20, HEAVY[1:]]
    with pytest.raises(cb.CalibrantError, match="sample_weight must not be all but in one row"):
        cb.skce(Y, P, sample_weight=weight)
    even = cb.skce(Y, P, sample_weight=np.r_[1e20, 1e20, HEAVY[2:]])
    assert even == pytest.approx((Y[0] - P[0]) * (Y[1] - P[1]) * math.exp(-1), rel=1e-9)


@pytest.mark.parametrize("scale", [1e-98, 1e98])
def test_a_sketch_of_light_or_heavy_rows_is_read_back(scale):
    sketch = cb.Sketch(2520).update(Y, P, HEAVY * scale)
    again = cb.Sketch.from_bytes(sketch.to_bytes())
    assert again == sketch
    found = cb.estimate("smooth_ece", again)
    assert 0 <= found.low <= found.value
    assert found.low <= found.high <= 1


def test_weights_of_1_bound_the_distance_as_no_weights_do():
    # A running sum that is 0 but for rounding must not decide which way the witness slopes.
    rng = np.random.default_rng(103)
    n = int(rng.integers(2, 80))
    p = rng.random(n).round(int(rng.integers(1, 4)))
    y = (rng.random(n) < p).astype(int)
    bare = cb.distance_bounds(y, p)
    for weight in (1.0, 0.1):
        weighted = cb.distance_bounds(y, p, sample_weight=np.full(n, weight))
        assert weighted.low == pytest.approx(bare.low, rel=1e-9)
        assert weighted.high == pytest.approx(bare.high, rel=1e-9)


def test_weights_of_one_column_are_taken_by_subpopulations():
    flat = call("subpopulation_test", sample_weight=HEAVY)
    assert call("subpopulation_test", sample_weight=HEAVY[:, None]) == flat
    curve = call("subpopulation_curve", sample_weight=HEAVY[:, None], group=(SITE == 0)[:, None])
    assert curve.deviation.shape == call("subpopulation_curve").deviation.shape


def test_a_weighted_sketch_of_few_rows_is_assessed():
    sketch = cb.Sketch(2520).update(Y, P, HEAVY)
    assert 0 < cb.assess(sketch, n_resamples=39).test.p_value <= 1


@pytest.mark.parametrize("rtol", [-1e-9, math.nan, math.inf, "a", None, np.ones(2)])
def test_sketches_are_close_up_to_a_number(rtol):
    sketch = cb.Sketch(60).update(Y, P)
    assert sketch.allclose(sketch, rtol=0)
    with pytest.raises(cb.CalibrantError, match="rtol must be a number of at least 0; got"):
        sketch.allclose(sketch, rtol=rtol)


# Containers.


def test_tables_of_pyarrow_are_read_as_other_dataframes_are():
    pyarrow = pytest.importorskip("pyarrow")
    one = pyarrow.table({"p": P})
    assert (
        cb.ece(Y, one) == cb.ece(pyarrow.table({"y": Y}), one, sample_weight=None) == cb.ece(Y, P)
    )
    assert cb.ece(Y, pyarrow.table({"no": 1 - P, "yes": P})) == cb.ece(Y, P)
    y3, names = np.array(["a", "b", "c"] * 4), ["a", "b", "c"]
    classes = pyarrow.table({name: P3[:, i] for i, name in enumerate(names)})
    assert cb.ece(y3, classes, labels=names) == cb.ece(y3, P3, labels=names)
    assert cb.ece(y3, classes, labels=["b", "a", "c"]) == cb.ece(y3, P3, labels=names)
    with pytest.raises(cb.CalibrantError, match="y_prob"):
        cb.ece(Y, pyarrow.table({}))


OF_ROWS = ["ace", "distance_bounds", "interval_error", "laplace_kernel_error", "log_score"]
OF_ROWS += ["recommend", "score_decomposition", "skce", "weak_calibration_error"]


@pytest.mark.parametrize("name", OF_ROWS)
def test_a_sketch_in_place_of_rows_that_are_needed(name):
    sketch = cb.Sketch(60).update(Y, P)
    with pytest.raises(cb.SketchError, match="give the rows, y_true and y_prob"):
        getattr(cb, name)(sketch)
    with pytest.raises(cb.SketchError, match="give the rows, y_true and y_prob"):
        getattr(cb, name)(y_true=sketch)
