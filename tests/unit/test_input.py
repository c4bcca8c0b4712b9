"""Every form of input is read, and every bad one gets its own sentence."""

from decimal import Decimal

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.rows import read_sample
from tests.tolerances import nearly

Y = np.array([0, 1, 1, 0, 1])
P = np.array([0.1, 0.9, 0.6, 0.4, 0.75])
EXPECTED = nearly(cb.ece(Y, P))


@pytest.mark.parametrize("dtype", ["f8", "f4", "i1", "u1", "i4", "i8", "?", "O"])
def test_outcomes_of_any_dtype(dtype):
    assert cb.ece(Y.astype(dtype), P) == EXPECTED


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_predictions_of_any_float_width_are_computed_in_float64(dtype):
    p = P.astype(dtype)
    assert cb.ece(Y, p) == nearly(cb.ece(Y, p.astype(np.float64)))


def test_containers():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for y, p in (
        (Y.tolist(), P.tolist()),
        (tuple(Y.tolist()), tuple(P.tolist())),
        (pandas.Series(Y, index=[9, 8, 7, 6, 5]), pandas.Series(P, index=[9, 8, 7, 6, 5])),
        (pandas.Series(Y, dtype="Int64"), pandas.Series(P, dtype="Float64")),
        (polars.Series(Y), polars.Series(P)),
        (pyarrow.array(Y), pyarrow.chunked_array([P[:2], P[2:]])),
        (Y[:, None], P[:, None]),
        (Y, np.column_stack([1 - P, P])),
        (Y, pandas.DataFrame({"no": 1 - P, "yes": P})),
        ([Decimal(int(v)) for v in Y], P),
    ):
        assert cb.ece(y, p) == EXPECTED


def test_tensors():
    torch = pytest.importorskip("torch")
    assert cb.ece(torch.tensor(Y), torch.tensor(P, requires_grad=True)) == EXPECTED
    half = torch.tensor([0.25, 0.5], dtype=torch.bfloat16)
    assert cb.ece([0, 1], half) == cb.ece([0, 1], [0.25, 0.5])


@pytest.mark.parametrize(
    ("y", "options"),
    [
        (["no", "yes", "yes", "no", "yes"], {"pos_label": "yes"}),
        (np.array(["no", "yes", "yes", "no", "yes"], dtype=object), {"pos_label": "yes"}),
        (["no", "yes", "yes", "no", "yes"], {"labels": ["no", "yes"]}),
        ([-1, 1, 1, -1, 1], {"pos_label": 1}),
        ([2, 1, 1, 2, 1], {"pos_label": 1}),
    ],
)
def test_two_labels(y, options):
    assert cb.ece(y, P, **options) == EXPECTED


def test_two_columns_with_labels_and_positive_label():
    y = ["no", "yes", "yes", "no", "yes"]
    both = np.column_stack([P, 1 - P])
    assert cb.ece(y, both, labels=["yes", "no"], pos_label="yes") == EXPECTED
    assert cb.ece(np.eye(2)[Y], np.column_stack([1 - P, P])) == EXPECTED


def test_a_batch_without_positives_is_fine():
    assert cb.ece(["no", "no"], [0.25, 0.25], pos_label="yes") == 0.25
    assert cb.ece([0, 0], [0.25, 0.25]) == 0.25


def test_soft_labels_are_kept():
    assert cb.ece([0.25, 0.5], [0.25, 0.75]) == 0.125
    # Forecasts of 0 and 1 beside soft labels are allowed, as long as they do not look swapped.
    assert cb.ece([0.2, 0.9], [0.0, 1.0], n_bins=2) == pytest.approx(0.15)
    assert cb.ece([0.1, 0.2, 0.3, 0.4], [1.0, 1.0, 1.0, 1.0]) == pytest.approx(0.75)


def test_zero_weights_count_for_nothing():
    y, p, w = [*Y, 1, 0], [*P, 0.01, 0.99], [1, 1, 1, 1, 1, 0, 0]
    for options in ({}, {"n_bins": "sqrt"}, {"strategy": "quantile", "n_bins": 3}):
        assert cb.ece(y, p, sample_weight=w, **options) == nearly(cb.ece(Y, P, **options))


def test_nothing_is_copied_when_already_float64():
    y = Y.astype(np.float64)
    sample = read_sample(y, P)
    assert np.shares_memory(sample.p, P)
    assert np.shares_memory(sample.y, y)


BAD = {
    "out of range": (
        Y,
        [0.1, 1.2, 0.6, 1.3, 0.75],
        r"y_prob must lie in \[0, 1\]; got 1.2 at index 1 \(2 such values\): only",
    ),
    "one out of range": (Y, [0.1, 120.0, 0.6, 0.4, 0.75], r"120.0 at index 1: only"),
    "percentages": (Y, P * 100, "percentages\\? divide by 100"),
    "numbers of rows": (
        Y,
        [12.0, 3141.0, 4999.0, 7.0, 250.0],
        "got 12.0 at index 0 \\(5 such values\\): only probabilities can be calibrated$",
    ),
    "logits": (Y, [-2.0, 3.0, 1.0, -1.0, 0.5], "-2.0 at index 0 .* logits or scores"),
    "float32 rounding": (
        Y,
        np.array([0.1, 1.0000001, 0.6, 0.4, 0.75], dtype=np.float32),
        "clip them",
    ),
    "nan": (
        Y,
        [0.1, np.nan, 0.6, np.nan, 0.75],
        r"must be finite; got nan at index 1 \(2 such values",
    ),
    "infinite": (Y, [0.1, np.inf, 0.6, 0.4, 0.75], "must be finite; got inf at index 1"),
    "nan outcome": ([0, np.nan, 1, 0, 1], P, "y_true must be finite; got nan at index 1"),
    "empty": ([], [], "y_true must have at least one row"),
    "a single number": (1, [0.5], "y_true must be a list"),
    "lengths": (Y[:4], P, "y_prob must have as many rows as y_true; got 5 and 4"),
    "swapped": (P, Y, r"y_true and y_prob look swapped, .*: exchange them"),
    "swapped text": (
        P,
        list("abbab"),
        "if these are the outcomes, give them as the first argument",
    ),
    "text labels": (
        ["out", "in", "in", "out", "in"],
        P,
        "got the labels 'in' and 'out': name the positive one with pos_label$",
    ),
    "yes and true": (
        ["no", "true", "true", "no", "true"],
        P,
        "got the labels 'no' and 'true': name the positive one with pos_label$",
    ),
    "text digits": (
        ["0", "1", "1", "0", "1"],
        P,
        "labels '0' and '1': name the positive one with pos_label",
    ),
    "one text label": (["in"] * 5, P, "got 'in' in every row: name the positive one"),
    "text classes": (
        list("abcab"),
        P,
        "3 labels such as 'c' at index 2: several classes need one column of probabilities per",
    ),
    "minus one": ([-1, 1, 1, -1, 1], P, "labels -1 and 1: name the positive one with pos_label"),
    "one and two": ([1, 2, 2, 1, 2], P, "labels 1 and 2: name the positive one"),
    "many classes": (
        [0, 1, 2, 3, 4],
        P,
        "5 labels such as 4 at index 4: several classes need one column",
    ),
    "a stray class": ([0, 2, 1, 2, 0], P, r"3 labels such as 2 at index 1 \(2 such values\): sev"),
    "one below": ([0, 1, -1, 1, 0], P, "3 labels such as -1 at index 2: several"),
    "a model per row": (Y, [P, P], "as many rows as y_true; got 2 and 5: transpose it; of several"),
    "a row": (Y, P[None, :], "y_prob must have as many rows as y_true; got 1 and 5: transpose it"),
    "two models": (Y, np.stack([P, P**2], axis=1), "of two models, compare, report and plots take"),
    "a class missing": (
        [0, 1, 2, 0, 1],
        np.full((5, 3), 0.3),
        "got a sum of 0.9 .*: is the column of a class missing\\? otherwise normalize",
    ),
    "independent classes": (
        [0, 1, 2, 0, 1],
        np.full((5, 3), 0.5),
        "normalize the rows, or give the column of one class at a time; of several models, compar",
    ),
    "a mapping": (Y, {"a": P}, "got dict: give one of its values, or list"),
    "a set": (Y, {0.1, 0.2}, "got set: a set has no order: give a list, one value per row"),
    "soft out of range": ([0.5, 1.5, 0.2, 0.1, 0.3], P, r"y_true must lie in \[0, 1\]; got 1.5"),
    "missing": ([0, None, 1, 0, 1], P, "y_true must be finite; got nan at index 1"),
    "words": (Y, ["a", "b", "c", "d", "e"], "y_prob must hold numbers; got 'a' at index 0"),
    "objects": (Y, [0.1, object(), 0.6, 0.4, 0.75], "must hold numbers; got <object"),
    "complex": (Y, P + 0j, "y_prob must hold numbers"),
    "ragged": (Y, [[0.1], [0.2, 0.3]], "rows of different lengths"),
    "a dict": ({"y": 1}, P, "y_true must be a list, an array, a tensor or a dataframe column"),
    "three dimensions": (Y, np.zeros((5, 1, 1)), r"y_prob must have shape \(n,\); got \(5, 1, 1\)"),
    "wide outcomes": (np.zeros((5, 3)), P, r"y_true must have shape \(n,\)"),
    "masked": (Y, np.ma.masked_less(P, 0.2), "masked values; got one at index 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    y, p, sentence = BAD[case]
    with pytest.raises(cb.CalibrantError, match=sentence) as caught:
        cb.ece(y, p)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        ([1, -1, 1, 1, 1], "must not be negative; got -1 at index 1"),
        ([1, np.nan, 1, 1, 1], "must be finite"),
        ([0] * 5, "must not be zero everywhere"),
        ([1, 1], r"one weight per row, shape \(5,\); got \(2,\)"),
        (
            [1e308] * 5,
            r"must be 0 or from 1e-100 to 1e\+100; got 1e\+308 at index 0 \(5 such values",
        ),
        ([1, 1, 0, 1e-300, 1], r"got 1e-300 at index 3: rescale"),
        (["a"] * 5, "must hold numbers"),
    ],
)
def test_bad_weights(weight, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.ece(Y, P, sample_weight=weight)


def test_missing_values_in_columns():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(cb.CalibrantError, match="missing or masked values; got one at index 2"):
        cb.ece(Y, pandas.Series([0.1, 0.9, None, 0.4, 0.75]))
    polars = pytest.importorskip("polars")
    with pytest.raises(cb.CalibrantError, match=r"got one at index 0 \(2 such values\)"):
        cb.ece(polars.Series([None, 1, None, 0, 1]), P)
    with pytest.raises(cb.CalibrantError, match="lazy frame"):
        cb.ece(Y, polars.LazyFrame({"p": P}))


def test_more_labels_than_a_positive_one_can_part():
    with pytest.raises(cb.CalibrantError, match="got 3 \\('a', 'b', 'c'\\): several classes need"):
        cb.ece(list("abcab"), P, pos_label="a")


def test_a_wrong_positive_label():
    with pytest.raises(
        cb.CalibrantError, match="one of the labels in y_true \\('no', 'yes'\\); got 'ja'"
    ):
        cb.ece(["no", "yes", "yes", "no", "yes"], P, pos_label="ja")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number of at least 1"),
        ({"n_bins": True}, "n_bins must be a whole number"),
        ({"n_bins": 2.5}, "n_bins must be a whole number"),
        ({"n_bins": "auto"}, "n_bins must be a whole number, 'sqrt', 'sweep' or 'cv'; got 'auto'"),
        ({"strategy": "mass"}, "strategy must be one of 'uniform', 'quantile'"),
        ({"strategy": [0, 0.5]}, "strictly increasing from 0 to 1"),
        ({"strategy": [0, 0.5, 0.5, 1]}, "strictly increasing from 0 to 1"),
        ({"norm": "L1"}, "norm must be one of 'l1', 'l2', 'max'; got 'L1'"),
        ({"assignment": "soft"}, "assignment must be one of"),
        ({"weighting": "count"}, "weighting must be one of"),
        ({"closed": "both"}, "closed must be one of"),
        ({"debias": True, "norm": "max"}, "debias needs norm 'l1' or 'l2'"),
        ({"debias": True, "weighting": "width"}, "debias needs"),
        ({"debias": True, "assignment": "convex"}, "debias needs"),
        ({"debias": True}, "got one row in 5 of 5 bins: use fewer bins"),
        ({"debias": True, "n_bins": 1, "sample_weight": [1, 2, 1, 1, 1]}, "got weighted rows"),
        ({"multiclass": "classwise"}, r"needs one column of probabilities per class; got"),
    ],
)
def test_bad_options(options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.ece(Y, P, **options)


def test_debias_refuses_soft_labels():
    with pytest.raises(cb.CalibrantError, match="got soft labels"):
        cb.ece([0.5, 0.25, 1.0], [0.5, 0.5, 0.5], debias=True)
