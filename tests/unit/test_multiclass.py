"""Reductions of class probabilities to binary problems."""

import numpy as np
import pytest

import calibrant as cb
from tests.tolerances import ROUNDING, nearly

RNG = np.random.default_rng(3)
N, C = 400, 5
P = RNG.dirichlet(np.ones(C), N)
Y = np.array([RNG.choice(C, p=row) for row in P])
W = RNG.integers(1, 4, N)


def test_by_hand():
    p = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]
    y = [0, 0]
    # confidence: .5 right, .5 wrong
    assert cb.ece(y, p) == 0.0
    # classes: (.5, 1), (.25, 1) | (.25, 0), (.5, 0) | (.25, 0), (.25, 0), one bin each
    assert cb.ece(y, p, multiclass="classwise", n_bins=1) == pytest.approx(
        ((0.5 + 0.75) / 2 + (0.25 + 0.5) / 2 + 0.25) / 3
    )
    # predicted 0: gap .5; predicted 1: gap -.5
    assert cb.ece(y, p, multiclass="top_label") == 0.5
    assert cb.ece(y, p, multiclass=1, n_bins=1) == 0.375


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reductions_are_binary_problems_combined(norm, weights, strategy):
    options = {"norm": norm, "strategy": strategy, "n_bins": 8}

    def binary(rows, p, y):
        w = None if weights is None else weights[rows]
        return cb.ece(y[rows], p[rows], sample_weight=w, **options)

    everything = np.arange(N)
    mass = np.ones(N) if weights is None else weights
    each = np.array([binary(everything, P[:, c], Y == c) for c in range(C)])
    top, predicted = P.max(axis=1), P.argmax(axis=1)
    groups = [np.flatnonzero(predicted == c) for c in range(C)]
    within = np.array([binary(g, top, predicted == Y) for g in groups])
    share = np.array([mass[g].sum() for g in groups]) / mass.sum()
    combine = {
        "l1": lambda v, s: v @ s,
        "l2": lambda v, s: np.sqrt(v**2 @ s),
        "max": lambda v, s: v.max(),
    }[norm]

    def measured(reduction):
        return cb.ece(Y, P, multiclass=reduction, sample_weight=weights, **options)

    assert measured("classwise") == pytest.approx(combine(each, np.full(C, 1 / C)), abs=ROUNDING)
    assert measured("top_label") == pytest.approx(combine(within, share), abs=ROUNDING)
    assert measured("confidence") == pytest.approx(
        binary(everything, top, predicted == Y), abs=ROUNDING
    )
    assert measured(None) == measured("confidence")
    assert measured(2) == pytest.approx(each[2], abs=ROUNDING)


def test_labels_name_the_columns():
    names = ["e", "d", "c", "b", "a"]
    y = np.array(names)[Y]
    for reduction in ("confidence", "classwise", "top_label"):
        named = cb.ece(y, P, labels=names, multiclass=reduction)
        assert named == cb.ece(Y, P, multiclass=reduction)
    assert cb.ece(y, P, labels=names, multiclass="d") == cb.ece(Y, P, multiclass=1)
    numbers = [10, 20, 30, 40, 50]
    assert cb.ece(np.array(numbers)[Y], P, labels=numbers) == cb.ece(Y, P)


def test_soft_outcomes():
    hard = np.eye(C)[Y]
    for reduction in ("confidence", "classwise", "top_label", 3):
        assert cb.ece(hard, P, multiclass=reduction) == pytest.approx(
            cb.ece(Y, P, multiclass=reduction), abs=ROUNDING
        )
        assert cb.ece(P, P, multiclass=reduction) == 0.0


def test_ties_in_argmax_go_to_the_first_column():
    assert cb.ece([0], [[0.5, 0.5, 0.0]]) == 0.5
    assert cb.ece([1], [[0.5, 0.5, 0.0]], multiclass="confidence") == 0.5
    assert cb.bin_table([0], [[0.5, 0.5, 0.0]]).mean_true[7] == 1.0


def test_two_columns_are_binary_unless_asked_otherwise():
    p = np.column_stack([1 - P[:, 0], P[:, 0]])
    y = (Y == 0).astype(int)
    assert cb.ece(y, p) == nearly(cb.ece(y, P[:, 0]))
    confidence = cb.ece((p.argmax(1) == y), p.max(1))
    assert cb.ece(y, p, multiclass="confidence") == nearly(confidence)


def test_adaptive_error_is_classwise_by_default():
    assert cb.ace(Y, P) == cb.ece(Y, P, strategy="quantile", multiclass="classwise")
    assert cb.ace(Y, P, multiclass="confidence") == cb.ece(Y, P, strategy="quantile")
    assert cb.ace(Y == 1, P[:, 1]) == cb.ece(Y == 1, P[:, 1], strategy="quantile")


def test_adaptive_error_is_that_of_nixon_with_even_bins():
    # 400 rows in 8 bins of 50: mean over classes and bins of abs(accuracy - confidence).
    gaps = []
    for c in range(C):
        order = np.argsort(P[:, c])
        for rows in np.split(order, 8):
            gaps.append(abs(np.mean(Y[rows] == c) - P[rows, c].mean()))
    assert cb.ace(Y, P, n_bins=8) == pytest.approx(np.mean(gaps), abs=ROUNDING)


def test_wide_tables_pass_through_tiles():
    p = RNG.dirichlet(np.full(70, 0.1), 2100).astype(np.float32)
    y = RNG.integers(0, 70, 2100)
    each = [cb.ece(y == c, p[:, c]) for c in range(70)]
    assert cb.ece(y, p, multiclass="classwise") == pytest.approx(np.mean(each), abs=ROUNDING)
    fortran = np.asfortranarray(p)
    # Not to the last digit: rows may be added in another order.
    assert cb.ece(y, fortran, multiclass="classwise") == pytest.approx(
        cb.ece(y, p, multiclass="classwise"), abs=ROUNDING
    )


def test_zero_weights_leave_rows_out():
    w = (np.arange(N) % 3 > 0).astype(float)
    kept = w > 0
    for reduction in ("confidence", "classwise", "top_label"):
        whole = cb.ece(Y, P, sample_weight=w, multiclass=reduction, strategy="quantile")
        part = cb.ece(Y[kept], P[kept], multiclass=reduction, strategy="quantile")
        assert whole == pytest.approx(part, abs=ROUNDING)


@pytest.mark.parametrize(
    ("y", "p", "options", "sentence"),
    [
        (Y, P * 1.2, {}, "y_prob must lie in|y_prob must have rows"),
        (
            Y,
            P / 2,
            {},
            r"y_prob must have rows that sum to 1; got a sum of 0.5 at index 0 \(400 such values\)",
        ),
        (Y + 1, P, {}, "class numbers from 0 to 4; got 5 at index"),
        (Y + 0.5, P, {}, "class numbers from 0 to 4"),
        (Y.astype(str), P, {}, "5 columns of y_prob have no names; .*: name the columns"),
        (Y, P, {"labels": [0, 1, 2]}, "labels must name the 5 columns of y_prob, each once"),
        (Y, P, {"labels": [0, 1, 2, 3, 3]}, "each once"),
        (
            Y,
            P,
            {"labels": [1, 2, 3, 4, 5]},
            "must hold the class labels 1, 2, 3, 4, 5; got 0 at index",
        ),
        (Y, P, {"multiclass": "cat"}, "or a reduction such as 'confidence'; got"),
        (Y, P, {"multiclass": 5}, "must be a class label \\(0, 1, 2, 3, 4\\) or .*; got 5"),
        (Y, P, {"pos_label": 1}, "pos_label is for binary problems; got 1 and 5 classes"),
        (np.eye(4)[Y % 4], P, {}, "y_true must have one column per column of y_prob; got 4 and 5"),
        (Y[:5], P, {}, "y_prob must have as many rows as y_true; got 400 and 5"),
        (Y, np.where(P == P[7, 3], 2.0, P), {}, "got 2.0 at row 7, column 3"),
    ],
)
def test_bad_class_input(y, p, options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.ece(y, p, **options)


@pytest.mark.parametrize("reduction", ["classwise", "top_label"])
def test_tables_take_one_problem(reduction):
    with pytest.raises(cb.CalibrantError, match="must select one binary problem"):
        cb.bin_table(Y, P, multiclass=reduction)


@pytest.mark.parametrize(
    ("soft", "sentence"),
    [
        (np.full((N, C), 0.3), "y_true must have rows that sum to 1"),
        (np.eye(C)[Y] * 2, r"y_true must lie in \[0, 1\]"),
    ],
)
def test_soft_outcomes_are_checked(soft, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.ece(soft, P)


def test_rows_of_weight_zero_do_not_count_in_rules():
    w = np.r_[np.ones(100), np.zeros(N - 100)]
    by_rule = cb.ece(Y, P, n_bins="sqrt", sample_weight=w)
    assert by_rule == pytest.approx(cb.ece(Y[:100], P[:100], n_bins=10), abs=ROUNDING)


def test_every_measure_takes_columns_by_the_names_of_classes():
    pandas = pytest.importorskip("pandas")
    shuffled = pandas.DataFrame(P)[[1, 0, 2, 3, 4]]
    for measure in (cb.ece, cb.ace, cb.mce, cb.smooth_ece, cb.density_ece, cb.brier_score):
        assert measure(Y, shuffled) == pytest.approx(measure(Y, P), abs=ROUNDING)


def test_outcomes_of_too_many_dimensions():
    with pytest.raises(cb.CalibrantError, match=r"y_true must have shape \(n,\)"):
        cb.ece(np.zeros((3, 2, 2)), np.eye(3))


@pytest.mark.parametrize("reduction", ["confidence", "classwise", "top_label"])
def test_a_class_with_the_name_of_a_reduction(reduction):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 50)
    y = rng.integers(0, 3, 50)
    names = np.array(["a", reduction, "c"])
    sentence = f"must not be both a reduction and one of the classes in labels; got '{reduction}'"
    for measure in (cb.ece, cb.cumulative_test, cb.assess):
        with pytest.raises(cb.CalibrantError, match=f"multiclass {sentence}: rename the class"):
            measure(names[y], p, labels=names, multiclass=reduction)
    # Without it there is nothing to mistake.
    assert cb.ece(names[y], p, labels=names) == cb.ece(y, p, multiclass="confidence")
    assert cb.ace(names[y], p, labels=names) == cb.ace(y, p, multiclass="classwise")
    assert cb.ece(names[y], p, labels=names, multiclass="a") == cb.ece(y, p, multiclass=0)
