"""Labels of every kind, and what is said when they do not fit."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.labels import read_labels
from tests.tolerances import nearly

P = np.array([0.1, 0.9, 0.6, 0.4, 0.75])
Y = np.array([0, 1, 1, 0, 1])
BOTH = np.column_stack([1 - P, P])
WORDS = np.array(["no", "yes"])[Y]


def test_the_positive_label_chooses_its_column():
    yes, no = nearly(cb.ece(Y, P)), nearly(cb.ece(1 - Y, 1 - P))
    assert cb.ece(Y, BOTH, pos_label=1) == yes
    assert cb.ece(Y, BOTH, pos_label=0) == no
    assert cb.ece(WORDS, BOTH, labels=["no", "yes"]) == yes
    assert cb.ece(WORDS, BOTH, labels=["no", "yes"], pos_label="no") == no


@pytest.mark.parametrize(
    ("y", "p", "options", "sentence"),
    [
        (WORDS, BOTH, {"pos_label": "yes"}, "got .yes.: name the columns in order with labels"),
        (WORDS, BOTH, {}, "got 'no' at index 0: name the columns in order"),
        ([np.nan, 1, 1, 0, 1], P, {"pos_label": 1}, "must be finite; got nan at index 0"),
        (["yes", None, "no"], P[:3], {"pos_label": "yes"}, "got None at index 1"),
        (np.array(["yes", np.nan], object), P[:2], {"pos_label": "yes"}, "got nan at index 1"),
        (["NO", "yes"], P[:2], {"labels": ["no", "yes"]}, "got 'NO' at index 0"),
        (Y, P, {"labels": [1, 2]}, "must hold the class labels 1, 2; got 0 at index 0"),
        (Y, P, {"pos_label": Y}, "pos_label must be one label"),
        (Y, P, {"pos_label": [1]}, "pos_label must be one label"),
        (Y, np.full((5, 3), 1 / 3), {"multiclass": np.array([0, 1])}, "multiclass must be one"),
        (Y == 1, np.full((5, 3), 1 / 3), {}, "got True and False"),
        (Y, np.full((5, 3), 1 / 3), {"labels": [[1], [2], [3]]}, "labels must name the 3 columns"),
        ([0, np.nan, 1, 1, 2], np.full((5, 3), 1 / 3), {}, "y_true must be finite; got nan"),
        ([b"no", b"yes"], P[:2], {}, "the labels b'no' and b'yes'"),
        ([2, 2], P[:2], {}, "got 2 in every row: name the positive one"),
        (Y, P.astype(str).astype(object), {}, "must hold numbers; got '0.1' at index 0"),
        (WORDS, P, {"labels": ["no", "yes"], "pos_label": "ja"}, "pos_label must be a class label"),
    ],
)
def test_labels_refused(y, p, options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.ece(y, p, **options)


def test_labels_of_unusual_kinds():
    assert cb.ece([b"no", b"yes"], [0.25, 0.5], pos_label=b"yes") == cb.ece([0, 1], [0.25, 0.5])
    mixed = np.array([1, "no"], dtype=object)
    assert cb.ece(mixed, [0.5, 0.25], pos_label=1) == cb.ece([1, 0], [0.5, 0.25])
    thirds = np.full((3, 3), 1 / 3)
    numbers = np.array([0, 1, 2], dtype=object)
    assert cb.ece(numbers, thirds, labels=range(3)) == cb.ece([0, 1, 2], thirds)
    assert cb.ece(numbers, thirds) == cb.ece([0, 1, 2], thirds)


@pytest.mark.parametrize(
    ("p", "hint"),
    [
        ([-0.1, -2.0, -3.0, -0.2, -0.5], "log-probabilities"),
        ([0.2, 1.5, 0.3, 0.1, 0.2], "only probabilities can be calibrated"),
        (np.full((5, 3), -1.0) + np.eye(5, 3) * 3, "softmax"),
    ],
)
def test_hints_about_numbers_out_of_range(p, hint):
    with pytest.raises(cb.CalibrantError, match=hint):
        cb.ece(Y, p)


def test_containers_that_cannot_be_read():
    for values in ((p for p in P), iter([0.1])):
        with pytest.raises(cb.CalibrantError, match=r"wrap it in list\(...\)"):
            cb.ece(Y, values)
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(cb.CalibrantError, match=r"make it dense with .toarray\(\)"):
        cb.ece(Y, sparse.csr_array(P[:, None]))
    with pytest.raises(cb.CalibrantError, match="y_prob is missing"):
        cb.ece(Y)
    with pytest.raises(cb.CalibrantError, match="must hold numbers"):
        cb.ece([0, 1], [10**400, 0.5])
    with pytest.warns(PendingDeprecationWarning):
        matrix = np.asmatrix(P).T
    assert cb.ece(Y, matrix) == nearly(cb.ece(Y, P))


def test_swapped_arguments_are_noticed_wherever_the_fractions_are():
    fractions = np.r_[np.zeros(5000), np.linspace(0, 1, 5000)]
    labels = np.tile([0.0, 1.0], 5000)
    with pytest.raises(cb.CalibrantError, match="swapped"):
        cb.ece(fractions, labels)


def test_a_mapping_of_one_column_has_its_labels():
    names, code = read_labels({"region": ["b", "a", "b"]}, "groups", None, 3)
    assert names == ["a", "b"]
    assert code.tolist() == [1, 0, 1]
