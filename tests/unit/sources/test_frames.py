"""Tables in memory and polars' lazy ones: what is counted, grouped, left out and refused."""

import math
import re
from decimal import Decimal

import narwhals as nw
import numpy as np
import pytest

from calibrant import CalibrantError, Sketch, sketch

pl = pytest.importorskip("polars")

EAGER_AND_LAZY = pytest.mark.parametrize("form", [pl.DataFrame, pl.LazyFrame])


@EAGER_AND_LAZY
def test_counts_by_hand(form):
    table = form({"p": [0.05, 0.25, 0.25, 1.0], "y": [0, 1, 0, 1]})
    counts = sketch(table, label="y", prob="p", n_cells=10).table.counts
    assert counts.tolist() == [[1, 0, 1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0, 0, 1]]


@EAGER_AND_LAZY
def test_offsets_by_hand(form):
    table = form({"p": [0.25, 0.28125], "y": [1, 1]})
    offsets = sketch(table, label="y", prob="p", n_cells=8).table.offsets
    # 0.28125 * 8 = 2.25, a quarter below the centre of cell 2; 0.25 is a half below it.
    assert offsets[1, 2] == -0.5 - 0.25 + 1j * (0.25 + 0.0625)


@EAGER_AND_LAZY
@pytest.mark.parametrize("dtype", [pl.Float32, pl.Float64, pl.Decimal(10, 2)])
def test_scores_on_edges_are_counted_above(form, dtype):
    p = [k / 100 for k in range(101)]
    table = pl.DataFrame({"p": pl.Series(p).cast(dtype), "y": [0] * 101}).lazy()
    table = table if form is pl.LazyFrame else table.collect()
    expected = Sketch(100).update(np.zeros(101), np.array(p, "f4" if dtype == pl.Float32 else "f8"))
    assert sketch(table, label="y", prob="p", n_cells=100).allclose(expected)


@EAGER_AND_LAZY
@pytest.mark.parametrize("labels", [[True, False], [1, 0], [1.0, 0.0]])
def test_outcomes_of_any_type(form, labels):
    made = sketch(form({"p": [0.2, 0.7], "y": labels}), label="y", prob="p")
    assert made == Sketch().update([1, 0], [0.2, 0.7])


@EAGER_AND_LAZY
def test_soft_labels_and_weights(form):
    table = form({"p": [0.2, 0.7, 0.7], "y": [0.5, 1.0, 0.25], "w": [2.0, 0.0, 3.0]})
    soft = sketch(table, label="y", prob="p")
    assert soft.allclose(Sketch().update([0.5, 1, 0.25], [0.2, 0.7, 0.7]))
    weighted = sketch(table, label="y", prob="p", weight="w")
    assert weighted.allclose(Sketch().update([0.5, 1, 0.25], [0.2, 0.7, 0.7], [2, 0, 3]))
    assert (weighted.n, weighted.weight) == (2, 5)


@EAGER_AND_LAZY
def test_a_soft_row_without_weight_makes_nothing_soft(form):
    table = form({"p": [0.2, 0.7], "y": [0.5, 1.0], "w": [0.0, 1.0]})
    assert not sketch(table, label="y", prob="p", weight="w").table.is_soft


@EAGER_AND_LAZY
def test_groups_null_included_in_order(form):
    table = form({"p": [0.1, 0.2, 0.3, 0.4], "y": [0, 1, 1, 0], "g": ["b", "a", None, "b"]})
    made = sketch(table, label="y", prob="p", by="g")
    assert list(made) == ["a", "b", None]
    assert made["b"] == Sketch().update([0, 0], [0.1, 0.4])
    assert made[None] == Sketch().update([1], [0.3])


@EAGER_AND_LAZY
@pytest.mark.parametrize("groups", [[1, 2], [1.0, 2.0], [True, False], [math.nan, 1.0]])
def test_groups_of_any_type(form, groups):
    made = sketch(form({"p": [0.1, 0.2], "y": [0, 1], "g": groups}), label="y", prob="p", by="g")
    assert set(made) == {None if group != group else group for group in groups}
    assert not any(isinstance(key, np.generic) for key in made)


@EAGER_AND_LAZY
def test_groups_may_be_the_probabilities_themselves(form):
    made = sketch(form({"p": [0.1, 0.2], "y": [0, 1]}), label="y", prob="p", by="p")
    assert made[0.2] == Sketch().update([1], [0.2])


@EAGER_AND_LAZY
def test_where_keeps_rows(form):
    table = form({"p": [0.1, 0.2, 0.3], "y": [0, 1, 1], "site": ["a", "b", "a"]})
    made = sketch(table, label="y", prob="p", where=nw.col("site") == "a")
    assert made == Sketch().update([0, 1], [0.1, 0.3])


@EAGER_AND_LAZY
@pytest.mark.parametrize(
    "name", ['"; DROP TABLE t; --', "it's", "a b.c", "\\", "é🙂", "p0", "fault", "cell", "1", ""]
)
def test_names_are_data(form, name):
    table = form({name: [0.25, 0.75], "label": [0, 1]})
    assert sketch(table, label="label", prob=name) == Sketch().update([0, 1], [0.25, 0.75])


# Classes.

CLASSES = {"a": [0.5, 0.2, 0.1], "b": [0.2, 0.5, 0.3], "c": [0.3, 0.3, 0.6]}


@EAGER_AND_LAZY
@pytest.mark.parametrize(
    ("labels", "prob", "keys"),
    [
        ([0, 1, 2], ["a", "b", "c"], [0, 1, 2]),
        (["a", "b", "c"], ["a", "b", "c"], ["a", "b", "c"]),
        (["x", "y", "z"], {"x": "a", "y": "b", "z": "c"}, ["x", "y", "z"]),
        ([7, 8, 9], {7: "a", 8: "b", 9: "c"}, [7, 8, 9]),
        (pl.Series(["a", "b", "c"], dtype=pl.Categorical), ["a", "b", "c"], ["a", "b", "c"]),
    ],
)
def test_one_sketch_per_class(form, labels, prob, keys):
    table = form({**CLASSES, "label": labels, "w": [1.0, 2.0, 3.0]})
    made = sketch(table, label="label", prob=prob)
    assert list(made) == keys
    for i, (key, name) in enumerate(zip(keys, "abc", strict=True)):
        outcome = np.arange(3) == i
        assert made[key].allclose(Sketch(2520).update(outcome, CLASSES[name]))
    weighted = sketch(table, label="label", prob=prob, weight="w", n_cells=50)
    expected = Sketch(50).update([0, 0, 1], CLASSES["c"], [1, 2, 3])
    assert weighted[keys[2]].allclose(expected)


@EAGER_AND_LAZY
def test_a_row_with_one_bad_class_is_left_out_of_all(form):
    table = form({"a": [0.5, None, 0.1], "b": [0.5, 0.5, 0.9], "label": [0, 1, 1]})
    with pytest.warns(UserWarning, match=r"^1 row of 3 left out: 1 with null or nan in 'a'$"):
        made = sketch(table, label="label", prob=["a", "b"], on_invalid="drop")
    assert made[1].allclose(Sketch(2520).update([0, 1], [0.5, 0.9]))


@EAGER_AND_LAZY
def test_an_unknown_class_is_refused(form):
    table = form({"a": [0.5, 0.4], "b": [0.5, 0.6], "label": ["a", "z"]})
    with pytest.raises(
        CalibrantError, match=r"one of the classes 'a', 'b'; got 'z'.*each class needs its own"
    ):
        sketch(table, label="label", prob=["a", "b"])
    with pytest.warns(UserWarning, match="1 with an unknown class in 'label'"):
        assert sketch(table, label="label", prob=["a", "b"], on_invalid="drop")["a"].n == 1


# Rows that cannot be counted.

BAD = {
    "p": [0.5, None, math.nan, 1.2, -0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25],
    "y": [1.0, 1.0, 1.0, 1.0, 1.0, None, 2.0, 1.0, 1.0, 1.0, 0.0],
    "w": [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, None, -1.0, math.inf, 1.0],
}


@EAGER_AND_LAZY
def test_drop_leaves_out_exactly_the_bad_rows_and_tells(form):
    said = (
        r"^9 rows of 11 left out: 2 with null or nan in 'p', 2 with 'p' outside \[0, 1\], "
        r"1 with null or nan in 'y', 1 with 'y' outside \[0, 1\], 1 with null or nan in 'w', "
        r"2 with 'w' out of range$"
    )
    with pytest.warns(UserWarning, match=said):
        made = sketch(form(BAD), label="y", prob="p", weight="w", on_invalid="drop")
    assert made.allclose(Sketch().update([1, 0], [0.5, 0.25], [1, 1]))


@EAGER_AND_LAZY
def test_drop_within_groups(form):
    table = form({**BAD, "g": list("aabbaabbaab")})
    with pytest.warns(UserWarning, match="9 rows of 11"):
        made = sketch(table, label="y", prob="p", weight="w", by="g", on_invalid="drop")
    assert {key: one.n for key, one in made.items()} == {"a": 1, "b": 1}


def test_drop_is_silent_when_nothing_is_dropped():
    table = pl.DataFrame({"p": [0.5], "y": [1]})
    assert sketch(table, label="y", prob="p", on_invalid="drop").n == 1


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        (
            "p",
            [0.5, None, None],
            r"prob column 'p' must have a value.*at index 1 \(2 such values\): fill",
        ),
        ("p", [0.5, math.nan, 0.1], r"prob column 'p' must have a value.*at index 1: fill"),
        (
            "p",
            [0.5, 0.5, 45.0],
            r"'p' must lie in \[0, 1\]; got 45.0 at index 2: percentages.*by 100",
        ),
        ("p", [0.25, 0.5, -3.0], r"got -3.0 at index 2: logits or scores"),
        ("p", [0.5, 1.0000001, 0.5], r"got 1.0000001 at index 1: rounding errors"),
        ("p", [0.5, 1e9, 0.5], r"only probabilities can be calibrated"),
        ("y", [0.0, None, 1.0], r"label column 'y' must have a value in every row"),
        ("y", [-1.0, 1.0, 1.0], r"label column 'y' must lie in \[0, 1\]; got -1.0.*0 or 1"),
        ("w", [1.0, -2.0, 1.0], r"weight column 'w' must be finite and not negative; got -2.0"),
        ("w", [1.0, 1.0, math.inf], r"weight column 'w' must be finite and not negative; got inf"),
        (
            "w",
            [1.0, 1e160, 0.0],
            r"'w' must be 0 or from 1e-100 to 1e\+100; got 1e\+160.*: rescale",
        ),
        (
            "w",
            [0.0, 1.0, 1e-139],
            r"'w' must be 0 or from 1e-100 to 1e\+100; got 1e-139.*: rescale",
        ),
    ],
)
def test_one_sentence_for_each_fault(column, values, said):
    table = pl.DataFrame({"p": [0.5] * 3, "y": [1.0] * 3, "w": [1.0] * 3, column: values})
    with pytest.raises(CalibrantError, match=said) as caught:
        sketch(table, label="y", prob="p", weight="w")
    assert str(caught.value).endswith("or leave such rows out with on_invalid='drop'")
    assert "\n" not in str(caught.value)
    # The engine says the same, but for the place.
    lazily = re.split(r"(\.\*)? ?at index", said)[0]
    with pytest.raises(CalibrantError, match=lazily) as lazy:
        sketch(table.lazy(), label="y", prob="p", weight="w")
    assert "np.float64" not in str(lazy.value)


@EAGER_AND_LAZY
def test_any_value_below_0_tells_logits(form):
    table = form({"p": [1.43, -0.5, 0.5, 0.5], "y": [1, 0, 1, 0]})
    with pytest.raises(CalibrantError, match=r"got -0.5.*\(2 such values\): logits or scores"):
        sketch(table, label="y", prob="p")


@pytest.mark.parametrize("on_invalid", ["raise", "drop"])
@EAGER_AND_LAZY
def test_most_rows_are_never_left_out(form, on_invalid):
    table = form({"p": [None, 12.0, 80.0, 55.0, 0.5], "y": [1, 0, 1, 0, 1]})
    words = r"'p' must lie in \[0, 1\]; .*\(3 such values\): percentages\? divide by 100; most rows"
    with pytest.raises(CalibrantError, match=words) as caught:
        sketch(table, label="y", prob="p", on_invalid=on_invalid)
    assert str(caught.value).endswith("too many to leave out; other rows are invalid, too")


@EAGER_AND_LAZY
@pytest.mark.parametrize("ids", [[2.0, 3.0, 101.0], [1.0000001, 4999.0, 3.0]])
def test_numbers_beyond_100_are_no_percentages(form, ids):
    with pytest.raises(CalibrantError) as caught:
        sketch(form({"p": ids, "y": [1, 0, 1]}), label="y", prob="p")
    assert "only probabilities can be calibrated" in str(caught.value)


def test_other_faults_are_counted_too():
    table = pl.DataFrame({"p": [None, 1.5, 0.5], "y": [1, 0, 7]})
    with pytest.raises(CalibrantError, match=r"; other rows are invalid, too$"):
        sketch(table, label="y", prob="p")


def test_places_are_those_kept_by_where():
    table = pl.DataFrame({"p": [0.1, 0.2, 5.0], "y": [1, 0, 1]})
    with pytest.raises(CalibrantError, match="at index 1 of the rows kept by where"):
        sketch(table, label="y", prob="p", where=nw.col("p") > 0.15)


@EAGER_AND_LAZY
def test_no_rows(form):
    empty = form({"p": [], "y": []}, schema={"p": pl.Float64, "y": pl.Int64})
    with pytest.raises(CalibrantError, match="at least one row; got none"):
        sketch(empty, label="y", prob="p")
    table = form({"p": [0.5, None], "y": [1, None]})
    with pytest.raises(CalibrantError, match="at least one row left by where; got none"):
        sketch(table, label="y", prob="p", where=nw.col("p") > 0.9)
    with (
        pytest.raises(CalibrantError, match="at least one valid row left by where"),
        pytest.warns(UserWarning, match="1 row of 1 left out"),
    ):
        sketch(table, label="y", prob="p", where=nw.col("p").is_null(), on_invalid="drop")


# Arguments.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"prob": "q"}, "there is no column 'q'; the columns are 'p', 'y', 't'"),
        ({"label": None}, "label must be the name of a column; got None"),
        ({"weight": 3}, "weight must be the name of a column; got 3"),
        ({"by": ["t"]}, r"by must be the name of a column; got \['t'\]"),
        ({"prob": 0}, "prob must be the name of a column, or name at least two"),
        ({"prob": ["p"]}, "or name at least two"),
        ({"prob": ["p", "p"]}, "prob must name each column once"),
        ({"prob": "y"}, "prob must not be the column of label; got 'y'"),
        ({"prob": ["p", "y"]}, "prob must not be the column of label; got 'y'"),
        ({"by": "y"}, "by must not be the column of label; got 'y'"),
        ({"weight": "y"}, "weight must not be the column of label; got 'y'"),
        (
            {"prob": ["p", "y"], "by": "t"},
            "by must be left out where prob names one column per class",
        ),
        ({"prob": "t"}, "prob column 't' must hold numbers; got String: convert it first"),
        (
            {"label": "t"},
            "label column 't' must hold numbers.*one column of probabilities per class",
        ),
        (
            {"label": "t", "prob": {1: "p", 2: "y"}},
            "name classes by the values of label column 't'.*text",
        ),
        ({"label": "d", "prob": ["p", "y"]}, "label column 'd' must hold the names or numbers"),
        ({"where": "p > 0"}, "where must be a narwhals expression.*got 'p > 0'"),
        ({"where": nw.col("q") > 0}, "source cannot be read as asked: .*q"),
        ({"on_invalid": "ignore"}, "on_invalid must be one of 'raise', 'drop'"),
        ({"n_cells": 0}, "n_cells must be a whole number of at least 1"),
    ],
)
@EAGER_AND_LAZY
def test_arguments_are_refused_in_one_sentence(form, change, said):
    data = {"p": [0.5], "y": [1], "t": ["a"]}
    table = form(data)
    if change.get("label") == "d":
        table = table.with_columns(d=pl.lit(0).cast(pl.Date))
    with pytest.raises(CalibrantError, match=said) as caught:
        sketch(table, **{"label": "y", "prob": "p", **change})
    assert "\n" not in str(caught.value)


def test_many_columns_are_not_all_listed():
    table = pl.DataFrame({f"c{i}": [0.5] for i in range(50)})
    with pytest.raises(CalibrantError, match=r"'c11', \.\.\.$"):
        sketch(table, label="y", prob="p")


@pytest.mark.parametrize("source", [np.zeros((2, 2)), None, {"p": [0.5]}, pl.Series([0.5])])
def test_what_is_no_table_is_refused(source):
    with pytest.raises(CalibrantError, match="source must be a path, a glob or a table"):
        sketch(source, label="y", prob="p")


def test_rows_of_no_weight_are_ignored():
    table = pl.DataFrame({"p": [0.5, 0.5], "y": [1, 0], "w": [0.0, 1.0], "g": ["a", "b"]})
    made = sketch(table, label="y", prob="p", weight="w", by="g")
    assert (made["a"].n, made["b"].n) == (0, 1)


def test_pandas_in_all_its_dtypes():
    pd = pytest.importorskip("pandas")
    p, y = [0.2, None, 0.7], [True, False, None]
    tables = [
        pd.DataFrame({"p": p, "y": pd.Series(y, dtype=object)}),
        pd.DataFrame({"p": pd.array(p, dtype="Float32"), "y": pd.array(y, dtype="boolean")}),
        pd.DataFrame(
            {"p": pd.Series([Decimal("0.2"), None, Decimal("0.7")], dtype=object), "y": y}
        ),
    ]
    for table in tables:
        with pytest.warns(UserWarning, match="2 rows of 3 left out"):
            made = sketch(table, label="y", prob="p", on_invalid="drop", n_cells=10)
        assert made.table.counts[1].tolist() == [0, 0, 1] + [0] * 7


def test_text_among_objects_is_refused():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"p": pd.Series([0.5, "0.5"], dtype=object), "y": [1, 0]})
    with pytest.raises(CalibrantError, match=r"'p' must hold numbers; got '0\.5' at index 1"):
        sketch(table, label="y", prob="p")
