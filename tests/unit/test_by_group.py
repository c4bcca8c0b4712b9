"""Tables of groups: labels of any kind, what each row says, multiplicity, and what is refused."""

import datetime as dt
import json

import numpy as np
import pytest

from calibrant import CalibrantError, Sketch, SketchError, by_group, cumulative_test, ece, estimate
from tests.tolerances import assert_nearly_equal, nearly

FEW = {"n_resamples": 99}


def drawn(n=1200, seed=0):
    """Return outcomes, predictions and sites, of which the last is overconfident."""
    rng = np.random.default_rng(seed)
    p, site = rng.beta(2, 2, n), rng.integers(0, 3, n)
    chance = np.where(site == 2, 0.5 + 0.3 * (p - 0.5), p)
    return (rng.random(n) < chance).astype(float), p, site


class TestRows:
    def test_each_row_is_what_the_functions_give(self):
        y, p, site = drawn()
        w = np.random.default_rng(1).exponential(1, len(y))
        table = by_group(y, p, site, sample_weight=w, n_bins=10, rng=4, level=0.9, **FEW)
        assert [row.group for row in table] == [0, 1, 2]
        for row in table:
            rows = site == row.group
            given = {"sample_weight": w[rows]}
            assert row.n == rows.sum()
            assert row.prevalence == pytest.approx(np.average(y[rows], weights=w[rows]))
            assert row.mean_prediction == pytest.approx(np.average(p[rows], weights=w[rows]))
            error = estimate("smooth_ece", y[rows], p[rows], rng=4, level=0.9, **FEW, **given)
            assert_nearly_equal(row.smooth_ece, error)
            assert row.ece == nearly(ece(y[rows], p[rows], n_bins=10, **given))
            assert_nearly_equal(row.test, cumulative_test(y[rows], p[rows], **given))
            assert row.p_value == row.test.p_value
            assert not row.small
            assert row.note == ""

    def test_deviation_is_signed(self):
        # Walks: 0.5 up; 0.25 down and up again to 0.125 above.
        table = by_group([1, 1, 0, 1], [0.5, 0.5, 0.5, 0.25], ["a", "a", "b", "b"], **FEW)
        assert table["a"].deviation == 0.5
        assert table["b"].deviation == 0.375
        assert by_group([0, 0], [0.25, 0.5], ["c", "c"], **FEW)["c"].deviation == -0.375

    def test_only_the_site_that_is_off_is_found(self):
        table = by_group(*drawn(6000), **FEW)
        assert table.miscalibrated == (2,)
        assert table[2].p_adjusted == pytest.approx(3 * table[2].p_value)

    def test_adjustments(self):
        y, p, site = drawn()
        p_values = [row.p_value for row in by_group(y, p, site, **FEW)]
        table = by_group(y, p, site, adjust="benjamini_hochberg", **FEW)
        assert [row.p_value for row in table] == p_values
        order = np.argsort(p_values)
        adjusted = np.array([row.p_adjusted for row in table])[order]
        assert adjusted[-1] == max(p_values)
        assert adjusted[0] <= 3 * min(p_values)
        assert table.adjust == "benjamini_hochberg"

    def test_confidence(self):
        rng = np.random.default_rng(3)
        p = rng.dirichlet(np.ones(3), 300)
        y, site = rng.integers(0, 3, 300), rng.integers(0, 2, 300)
        table = by_group(y, p, site, **FEW)
        top, right = p.max(axis=1), p.argmax(axis=1) == y
        assert_nearly_equal(table, by_group(right, top, site, **FEW))

    def test_same_seed_same_table(self):
        assert by_group(*drawn(), rng=3, **FEW) == by_group(*drawn(), rng=3, **FEW)
        generator = np.random.default_rng(3)
        assert len(by_group(*drawn(), rng=generator, **FEW)) == 3


class TestSmallGroups:
    def test_few_rows_are_flagged_and_simulated(self):
        y, p, site = drawn()
        site[:50] = 7
        table = by_group(y, p, site, **FEW)
        assert [row.small for row in table] == [False, False, False, True]
        assert table[7].test.method == "monte_carlo"
        assert table[0].test.method == "asymptotic"
        assert table[7].n == 50

    def test_p_values_can_be_as_small_as_the_number_of_groups_demands(self):
        # 10 000 walks are too few for one group at this level, as for 600 of them at 95%.
        table = by_group(np.zeros(40), np.full(40, 0.9), [1] * 40, level=0.99999, n_resamples=39)
        assert table.miscalibrated == (1,)
        assert table[1].p_value < 1e-5
        calibrated = by_group(np.arange(40) % 2, np.full(40, 0.5), [1] * 40, n_resamples=39)
        assert calibrated[1].p_value == 1

    def test_few_events_are_flagged(self):
        rng = np.random.default_rng(0)
        p = np.where(np.arange(1000) < 500, 0.02, 0.3)
        y = (rng.random(1000) < p).astype(float)
        table = by_group(y, p, np.arange(1000) // 500, **FEW)
        assert [row.small for row in table] == [True, False]
        assert [row.small for row in by_group(1 - y, 1 - p, np.arange(1000) // 500, **FEW)] == [
            True,
            False,
        ]

    def test_weights_can_make_few_rows_of_many(self):
        y, p, site = drawn()
        w = np.where(np.arange(len(y)) % 20 == 0, 1.0, 1e-6)
        assert all(row.small for row in by_group(y, p, site, sample_weight=w, **FEW))

    def test_a_single_row(self):
        table = by_group([1, 0, 1], [0.2, 0.5, 0.5], ["a", "b", "b"], **FEW)
        assert table["a"].n == 1
        assert table["a"].small
        # One outcome that had a chance of 0.2.
        assert table["a"].p_value == pytest.approx(0.2, abs=0.02)

    def test_weighted_sketches_are_judged_by_the_limit(self):
        sketch = Sketch().update([0, 1, 1], [0.2, 0.4, 0.9], [1.0, 2.0, 0.5])
        row = by_group({"a": sketch}, **FEW)["a"]
        assert row.small
        assert row.test.method == "asymptotic"


class TestNoTest:
    def test_soft_labels(self):
        y, p, site = drawn()
        y = np.where(site == 0, 0.5 * y + 0.2, y)
        table = by_group(y, p, site, **FEW)
        assert table[0].test is None
        assert np.isnan(table[0].p_value)
        assert np.isnan(table[0].p_adjusted)
        assert table[0].note == "soft labels: no test"
        # Two tests were made, not three.
        assert table[2].p_adjusted == pytest.approx(2 * table[2].p_value)
        assert "soft labels" in repr(table)

    def test_certain_predictions(self):
        table = by_group([0, 1, 1], [0.0, 1.0, 0.0], ["right", "right", "wrong"], **FEW)
        assert table["right"].note == "predictions of 0 and 1 alone: no test"
        assert table["wrong"].note.startswith("a prediction of 0 or 1 was wrong")
        assert table["wrong"].test is None
        assert table.miscalibrated == ()


class TestLabels:
    def names(self, groups):
        n = len(groups)
        table = by_group(np.arange(n) % 2, np.full(n, 0.5), groups, n_resamples=39)
        return [(row.group, row.n) for row in table]

    @pytest.mark.parametrize(
        ("groups", "expected"),
        [
            ([2, 1, 2, 10], [(1, 1), (2, 2), (10, 1)]),
            (["b", "a", "b", "c"], [("a", 1), ("b", 2), ("c", 1)]),
            (("b", "a", "b", "c"), [("a", 1), ("b", 2), ("c", 1)]),
            ([True, False, True, True], [(False, 1), (True, 3)]),
            (np.array([2.0, 1.5, 2.0, 1.5]), [(1.5, 2), (2, 2)]),
            (np.array(["b", "a", "b", "c"]), [("a", 1), ("b", 2), ("c", 1)]),
            (np.array([[1], [1], [0], [1]]), [(0, 1), (1, 3)]),
            (np.array([5, 5, 5, 5], dtype=np.uint8), [(5, 4)]),
        ],
    )
    def test_kinds(self, groups, expected):
        assert self.names(groups) == expected

    @pytest.mark.parametrize(
        "groups",
        [
            [1, None, 1, None],
            [1.0, float("nan"), 1.0, None],
            np.array([1.0, np.nan, 1.0, np.nan]),
            np.array([1, None, 1, np.nan], dtype=object),
        ],
    )
    def test_missing_labels_are_a_group(self, groups):
        assert self.names(groups) == [(1, 2), (None, 2)]

    def test_dates(self):
        days = np.array(["2026-03-01", "2026-01-01", "NaT"], dtype="datetime64[D]")
        first, second = dt.date(2026, 1, 1), dt.date(2026, 3, 1)
        assert self.names(days) == [(first, 1), (second, 1), (None, 1)]

    def test_columns_of_dataframes(self):
        polars = pytest.importorskip("polars")
        assert self.names(polars.Series([3, None, 3])) == [(3, 2), (None, 1)]
        column = polars.Series(["x", "y", "x"], dtype=polars.Categorical)
        assert self.names(column) == [("x", 2), ("y", 1)]

    def test_pandas(self):
        pandas = pytest.importorskip("pandas")
        assert self.names(pandas.Series([3, None, 3])) == [(3, 2), (None, 1)]
        column = pandas.Series(["x", None, "x"], index=[7, 8, 9])
        assert self.names(column) == [("x", 2), (None, 1)]
        assert self.names(column.astype("category")) == [("x", 2), (None, 1)]
        whole = pandas.Series([1, pandas.NA, 1], dtype="Int64")
        assert self.names(whole) == [(1, 2), (None, 1)]

    def test_pyarrow(self):
        pyarrow = pytest.importorskip("pyarrow")
        assert self.names(pyarrow.chunked_array([["x", None], ["x"]])) == [("x", 2), (None, 1)]

    def test_mixed_kinds_have_no_order(self):
        with pytest.raises(CalibrantError, match=r"labels of one type.*got int, str"):
            self.names([1, "a", 1])

    def test_what_is_no_label(self):
        with pytest.raises(CalibrantError, match="groups must hold hashable labels; got"):
            self.names([[1], [2], [3]])

    def test_one_label_a_row(self):
        with pytest.raises(CalibrantError, match="one label per row; got 2 labels for 3 rows"):
            by_group([0, 1, 1], [0.1, 0.5, 0.8], ["a", "b"])
        with pytest.raises(CalibrantError, match="groups is missing"):
            by_group([0, 1, 1], [0.1, 0.5, 0.8])

    def test_rows_of_weight_zero_do_not_count(self):
        y, p, site = drawn()
        w = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
        kept = w > 0
        expected = by_group(y[kept], p[kept], site[kept], sample_weight=w[kept], **FEW)
        assert_nearly_equal(by_group(y, p, site, sample_weight=w, **FEW), expected)
        gone = by_group(y, p, site, sample_weight=np.where(site == 1, 0.0, 1.0), **FEW)
        assert [row.group for row in gone] == [0, 2]


class TestSketches:
    def given(self):
        y, p, site = drawn()
        rows = by_group(y, p, site, **FEW)
        return rows, {k: Sketch().update(y[site == k], p[site == k]) for k in (2, 0, 1)}

    def test_the_same_table_in_the_order_of_the_dictionary(self):
        rows, sketches = self.given()
        table = by_group(sketches, **FEW)
        assert [row.group for row in table] == [2, 0, 1]
        for row in rows:
            other = table[row.group]
            assert other.n == row.n
            assert other.ece == pytest.approx(row.ece, abs=1e-12)
            assert other.smooth_ece.value == pytest.approx(row.smooth_ece.value, abs=1e-8)
            assert other.p_value == pytest.approx(row.p_value, rel=0.02)
            assert other.deviation == pytest.approx(row.deviation, abs=1e-3)

    def test_small_sketches_are_simulated(self):
        y, p, _ = drawn(60)
        row = by_group({None: Sketch().update(y, p)}, **FEW)[None]
        assert row.small
        assert row.test.method == "monte_carlo"
        assert row.p_value == pytest.approx(by_group(y, p, [0] * 60)[0].p_value, abs=0.03)

    def test_refused(self):
        sketch = Sketch().update([0, 1], [0.2, 0.8])
        with pytest.raises(SketchError, match="give a dictionary of sketches"):
            by_group(sketch)
        with pytest.raises(CalibrantError, match="groups must be left out"):
            by_group({"a": sketch}, groups=[1, 2])
        with pytest.raises(CalibrantError, match="sample_weight must be left out"):
            by_group({"a": sketch}, sample_weight=[1, 2])
        with pytest.raises(CalibrantError, match="must have a sketch; got list for 'a'"):
            by_group({"a": [1, 2]})
        with pytest.raises(SketchError, match="sketch of group 'b' is empty"):
            by_group({"a": sketch, "b": Sketch()})
        with pytest.raises(CalibrantError, match="the dictionary is empty"):
            by_group({})
        with pytest.raises(SketchError, match="probability scale"):
            by_group({"a": Sketch(scale="logit").update([0, 1], [0.2, 0.8])})


class TestResult:
    def test_print(self):
        y, p, site = drawn()
        site[:40] = 9
        lines = repr(by_group(y, p, site, **FEW)).splitlines()
        assert lines[0].split()[:4] == ["group", "n", "prevalence", "mean_pred"]
        assert lines[3].endswith(" *")
        assert lines[4].endswith(" small")
        assert lines[-1].endswith(
            "* p_adj <= 0.05 (holm); small: too few rows or events for a conclusion"
        )
        assert len({len(line) for line in lines[1:3]}) == 1

    def test_dictionary_is_flat_and_plain(self):
        plain = by_group([0.5, 1, 0], [0.5, 1.0, 0.2], ["a", "b", None], **FEW).to_dict()
        assert plain["adjust"] == "holm"
        assert [row["group"] for row in plain["rows"]] == ["a", "b", None]
        assert plain["rows"][0]["p_value"] is None
        kinds = (int, float, str, bool, type(None))
        assert all(isinstance(value, kinds) for row in plain["rows"] for value in row.values())

    def test_frame(self):
        pytest.importorskip("pandas")
        table = by_group([0, 1, 0, 1], [0.5, 0.9, 0.2, 0.1], [1, 2, None, 1], **FEW).to_frame()
        assert table["group"].tolist() == [1, 2, None]
        assert table["n"].tolist() == [2, 1, 1]
        assert {"smooth_ece", "low", "high", "ece", "p_adjusted", "small"} <= set(table.columns)

    def test_unknown_group(self):
        with pytest.raises(CalibrantError, match="no group 'x' here; there are: 0, 1, 2"):
            by_group(*drawn(), **FEW)["x"]

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"adjust": "bonferroni"}, "adjust must be one of 'holm', 'benjamini_hochberg'"),
            ({"level": 1.5}, "level must lie between 0 and 1"),
            ({"n_bins": 0}, "n_bins"),
            ({"n_resamples": 0}, "n_resamples"),
            ({"multiclass": "classwise"}, "one binary problem"),
        ],
    )
    def test_settings(self, given, reason):
        with pytest.raises(CalibrantError, match=reason):
            by_group(*drawn(50), **given)


def test_very_many_groups_are_refused():
    p = np.linspace(0.1, 0.9, 2005)
    y, group = np.arange(2005) % 2, np.arange(2005) // 5
    most = "groups must hold at most {} groups for 2,005 rows; got {}: join rare ones"
    with pytest.raises(CalibrantError, match=most.format(400, 401)):
        by_group(y, p, group)
    with pytest.raises(CalibrantError, match=most.format(40, 101)):
        by_group(y, p, group // 4, clusters=np.arange(2005))
    sketch = Sketch(60).update([0, 1], [0.2, 0.7])
    with pytest.raises(CalibrantError, match="at most 400 groups for 802 rows; got 401"):
        by_group(dict.fromkeys(range(401), sketch))
    # Of more rows there may be more groups: 402 of 100 500.
    many = sketch.update(np.zeros(248), np.full(248, 0.5))
    assert len(by_group(dict.fromkeys(range(402), many), **FEW)) == 402


def test_groups_of_dates_are_json():
    days = np.repeat(np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]"), 30)
    y, p = np.tile([0, 1], 30), np.linspace(0.1, 0.9, 60)
    found = json.loads(by_group(y, p, days, **FEW).to_json())
    assert [row["group"] for row in found["rows"]] == ["2026-01-01", "2026-01-02"]


def test_each_group_has_an_answer_to_the_tolerance():
    rng = np.random.default_rng(0)
    site, p = np.repeat([0, 1, 2], [20_000, 20_000, 60]), rng.random(40_060)
    y = rng.random(40_060) < np.where(site == 1, p**2, p)
    table = by_group(y, p, site, tolerance=0.03, **FEW)
    assert [row.answer for row in table] == ["within tolerance", "beyond tolerance", "cannot tell"]
    assert repr(table).splitlines()[2].split()[-2:] == ["beyond", "*"]
    assert table.to_dict()["rows"][0]["answer"] == "within tolerance"
    with pytest.raises(CalibrantError, match="one percentage point"):
        by_group(y, p, site, tolerance=3)


def test_a_group_without_a_label_is_not_the_group_called_so():
    labels = [None, "-", " a", "a"]
    printed = str(by_group([0, 1, 0, 1], [0.2, 0.7, 0.4, 0.8], labels)).splitlines()[1:5]
    assert [line[:6].strip() for line in printed] == ["' a'", "-", "a", "(none)"]


def test_labels_of_groups_are_counted_by_rows():
    with pytest.raises(CalibrantError, match=r"got 2 labels for 3 rows$"):
        by_group([0, 1, 0], [0.2, 0.7, 0.4], ["a", "b"])
