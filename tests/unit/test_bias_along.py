"""Bias along a feature: by hand, features of every kind, what is missing, and what is refused."""

import datetime as dt
import json
import math
from decimal import Decimal

import numpy as np
import pytest

from calibrant import CalibrantError, Sketch, SketchError, bias_along
from tests.tolerances import nearly

Y, P = [0, 0, 1, 1, 1, 1], [0.2, 0.4, 0.3, 0.6, 0.9, 0.9]


def along(feature, **options):
    return bias_along(Y, P, feature, **options)


class TestNumbers:
    def test_by_hand(self):
        table = along(["sea", "sea", "sea", "land", "land", "land"])
        assert table.label == ("land", "sea")
        assert table.n.tolist() == [3, 3]
        assert table.mean_pred.tolist() == pytest.approx([0.8, 0.3])
        assert table.mean_true.tolist() == pytest.approx([1, 1 / 3])
        assert table.gap.tolist() == pytest.approx([0.2, 1 / 30])

    def test_equal_predictions_leave_clopper_and_pearson(self):
        table = bias_along([0] * 5 + [1] * 5, [0.25] * 10, ["a"] * 5 + ["b"] * 5)
        far = 0.025 ** (1 / 5)
        assert table.low.tolist() == pytest.approx([-0.25, far - 0.25])
        assert table.high.tolist() == pytest.approx([1 - far - 0.25, 0.75])
        assert table.is_biased.tolist() == [False, True]

    def test_all_at_once(self):
        table = bias_along([0] * 10, [0.25] * 10, ["a", "b"] * 5, simultaneous=True)
        # Each of two intervals is missed on either side with chance a, and (1 - 2 a)^2 = 0.95.
        a = (1 - math.sqrt(0.95)) / 2
        assert table.high.tolist() == pytest.approx([1 - a ** (1 / 5) - 0.25] * 2)
        assert table.simultaneous
        assert "all at once" in repr(table)

    def test_good_predictions_make_intervals_shorter(self):
        y = np.tile([0, 1], 100)
        good, poor = (bias_along(y, p, ["a"] * 200) for p in (0.1 + 0.8 * y, [0.5] * 200))
        assert good.gap == nearly(poor.gap)
        assert (good.high - good.low)[0] < 0.5 * (poor.high - poor.low)[0]

    def test_weight_2_is_a_row_twice_but_for_its_noise(self):
        twice = bias_along([0, 1, 1], [0.2, 0.6, 0.6], ["a", "a", "a"])
        heavy = bias_along([0, 1], [0.2, 0.6], ["a", "a"], sample_weight=[1, 2])
        assert heavy.gap == pytest.approx(twice.gap)
        assert (heavy.n[0], heavy.weight[0]) == (2, 3)
        assert heavy.low[0] < twice.low[0]
        assert "weight" in repr(heavy)

    def test_the_scale_of_weights_is_nothing(self):
        w = np.arange(1, 7)
        one, other = (along(list("aabbab"), sample_weight=w * s) for s in (1, 1e-60))
        np.testing.assert_allclose(one.low, other.low)

    def test_one_cluster_tells_nothing(self):
        cluster = [1] * 30 + list(range(30))
        with pytest.warns(UserWarning, match="30 clusters are as good as 3, since 52%"):
            table = bias_along([0, 1] * 30, [0.3] * 60, list("a" * 30 + "b" * 30), clusters=cluster)
        assert (table.low[0], table.high[0]) == pytest.approx((-0.3, 0.7))
        assert table.high[1] - table.low[1] < 0.5

    def test_classes(self):
        p = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
        assert bias_along([0, 1, 1], p, [1, 1, 1]).mean_pred[0] == pytest.approx(1.9 / 3)
        assert bias_along([0, 1, 1], p, [1, 1, 1], multiclass=2).mean_pred[0] == pytest.approx(0.3)


FEATURES = {
    "text": (list("abacab"), "names", ("a", "b", "c")),
    "numpy text": (np.array(list("abacab")), "names", ("a", "b", "c")),
    "truth": (np.array([True, False] * 3), "names", ("False", "True")),
    "whole": ([3, 1, 3, 2, 3, 1], "numbers", ("1", "2", "3")),
    "decimal": ([Decimal("0.5"), 1, 1, 1, 1, 2], "numbers", ("0.5", "1", "2")),
    "single": (np.array([0.25, 0.5] * 3, dtype=np.float32), "numbers", ("0.25", "0.5")),
    "column": (np.array([[1.0], [2], [1], [2], [1], [2]]), "numbers", ("1", "2")),
    "dates": (
        [dt.date(2020, 1, day) for day in (1, 1, 1, 2, 2, 2)],
        "dates",
        ("2020-01-01", "2020-01-02"),
    ),
    "times": (
        np.array(["2020-01-01T01:30", "2020-01-01T22:00"] * 3, dtype="datetime64[m]"),
        "dates",
        ("2020-01-01 01:30", "2020-01-01 22:00"),
    ),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features_of_every_kind(name):
    feature, kind, label = FEATURES[name]
    table = along(feature)
    assert (table.kind, table.label, table.feature) == (kind, label, "")
    assert table.n.sum() == 6


MISSING = {
    "none": ["a", None, "b", "a", "b", "a"],
    "nan among text": ["a", float("nan"), "b", "a", "b", "a"],
    "nan": [1.5, np.nan, 2, 1.5, 2, 1.5],
    "none among numbers": [1, None, 2, 1, 2, 1],
    "none among dates": [dt.date(2020, 1, 1), None, *[dt.date(2020, 1, 2)] * 4],
    "NaT": np.array(["2020-01-01", "NaT", *["2020-01-02"] * 4], dtype="datetime64[D]"),
    "truth": [True, None, False, True, False, True],
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_missing_is_a_row_of_its_own(name):
    table = along(MISSING[name])
    assert table.has_missing
    assert len(table) == 3
    assert (table.label[-1], table.n[-1]) == ("missing", 1)
    assert table.gap[-1] == pytest.approx(-0.4)
    assert table.mean[-1] != table.mean[-1]
    assert table.to_dict()["mean"][-1] is None


def test_nothing_but_missing():
    for nothing in ([None] * 6, [np.nan] * 6):
        table = along(nothing)
        assert table.label == ("missing",)
        assert table.gap[0] == pytest.approx(0.7 / 6)


class TestColumns:
    def test_polars(self):
        pl = pytest.importorskip("polars")
        days = pl.Series("day", [dt.date(2020, 1, d) for d in (1, 1, 1, 2, 2, 2)])
        assert along(days).label == ("2020-01-01", "2020-01-02")
        assert along(days).feature == "day"
        assert along(pl.Series([1, None, 2, 1, 2, 1])).label == ("1", "2", "missing")
        sizes = pl.Series(["small", "large"] * 3, dtype=pl.Enum(["small", "middling", "large"]))
        assert along(sizes).label == ("small", "large")
        assert along(pl.Series(["b", "a"] * 3, dtype=pl.Categorical)).label == ("a", "b")
        with pytest.raises(CalibrantError, match="feature must hold numbers, dates, names"):
            along(pl.Series([[1]] * 6))

    def test_pandas(self):
        pd = pytest.importorskip("pandas")
        column = pd.Series([1, None, 2, 1, 2, 1], dtype="Int64", name="size")
        assert (along(column).label, along(column).feature) == (("1", "2", "missing"), "size")
        words = pd.Series(["a", None, "b", "a", "b", "a"], dtype=object)
        assert along(words).label == ("a", "b", "missing")
        sizes = pd.Categorical(["S", "L"] * 3, categories=["S", "L"], ordered=True)
        assert along(pd.Series(sizes)).label == ("S", "L")
        times = pd.Series(pd.to_datetime(["2020-01-01 23:00-03:00"] * 6))
        assert along(times).label == ("2020-01-01",)
        assert along(times.astype(object)).label == ("2020-01-01",)


class TestParts:
    def test_bins_of_equal_weight(self):
        x = np.arange(100.0)
        table = bias_along(np.ones(100), np.full(100, 0.5), x, n_bins=4)
        assert table.label == ("0 to 24", "25 to 49", "50 to 74", "75 to 99")
        assert table.mean.tolist() == [12, 37, 62, 87]

    def test_few_values_have_a_row_each(self):
        months = np.arange(240) % 12 + 1
        y, p = months > 6, np.full(240, 0.5)
        assert len(bias_along(y, p, months)) == 12
        assert len(bias_along(y, p, months, n_values=3, n_bins=3)) == 3
        # But not where each has next to no rows.
        assert len(bias_along(y[:24], p[:24], np.arange(24))) == 10

    def test_the_rarest_names_are_pooled(self):
        names = ["d"] * 4 + ["c"] * 3 + ["b"] * 2 + ["a"]
        options = {"n_values": 3}
        table = bias_along([1] * 10, [0.5] * 10, names, **options)
        assert table.label == ("c", "d", "others (2)")
        assert (table.n.tolist(), table.n_pooled) == ([3, 4, 3], 2)
        heavy = [1] * 9 + [9]
        table = bias_along([1] * 10, [0.5] * 10, names, sample_weight=heavy, **options)
        assert table.label == ("a", "d", "others (2)")

    def test_numbers_are_written_as_shortly_as_tells_them_apart(self):
        x = np.repeat([0.12345, 0.12346, 2.5], 5)
        table = bias_along([1] * 15, [0.5] * 15, x)
        assert table.label == ("0.12345", "0.12346", "2.5")
        x = np.array([12345.678, 0.002, 3e20])
        assert bias_along([1] * 3, [0.5] * 3, x).label == ("0.002", "12300", "3e+20")

    def test_rows_without_weight_are_left_out(self):
        table = along(list("aabbcc"), sample_weight=[1, 1, 0, 0, 1, 1])
        assert table.label == ("a", "c")


class TestResult:
    def test_it_is_printed(self):
        lines = repr(bias_along([0] * 9, [0.5] * 9, [1] * 9)).splitlines()
        assert lines[0].split() == [
            "feature",
            "n",
            "mean_pred",
            "mean_true",
            "gap",
            "95%",
            "interval",
        ]
        assert lines[1].split()[-1] == "*"
        assert lines[2] == "* 0 lies outside; intervals hold each by itself"

    def test_it_does_not_change(self):
        table = along(list("aabbcc"))
        with pytest.raises(ValueError, match="read-only"):
            table.gap[0] = 1
        assert table.to_dict()["label"] == ["a", "b", "c"]

    def test_frames(self):
        pytest.importorskip("pandas")
        named, numbered = along(list("aabbcc")).to_frame(), along([1, 1, 1, 2, 2, 2]).to_frame()
        assert named["label"].tolist() == ["a", "b", "c"]
        assert "minimum" not in named
        assert numbered["mean"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("feature", "options", "sentence"),
    [
        (None, {}, "feature is missing"),
        ([1, 2], {}, "one value per row; got 2 for 6 rows"),
        ([1, 2], {"sample_weight": [1] * 6}, "one value per row; got 2 for 6 rows"),
        ([1, "a"] * 3, {}, "of one type, which can be sorted; got int, str"),
        ([1, np.inf] * 3, {}, "feature must be finite; got inf at index 1"),
        ([[1], [2]] * 3, {}, "got list: convert it first"),
        (np.zeros((6, 2)), {}, r"feature must have shape \(n,\)"),
        (np.ones(6) * 1j, {}, "got complex128: convert it first"),
        ([1] * 6, {"n_bins": 0}, "n_bins must be a whole number"),
        ([1] * 6, {"n_values": 0}, "n_values must be a whole number"),
        ([1] * 6, {"level": 2}, "level"),
        ([1] * 6, {"clusters": [1]}, "clusters must have one label per row"),
        ([1] * 6, {"multiclass": "classwise"}, "must select one binary problem"),
    ],
)
def test_what_is_refused(feature, options, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        along(feature, **options)


def test_sketches_are_refused():
    with pytest.raises(SketchError, match="needs rows"):
        bias_along(Sketch().update(Y, P), None, [1] * 6)


class TestDates:
    DAYS = ("2020-01-01", "2020-01-02", "2020-01-03", "2020-01-04")

    def test_times_are_as_written_whatever_their_zone(self):
        pd = pytest.importorskip("pandas")
        days = pd.Series(pd.date_range("2020-01-01", periods=4, tz="Asia/Tokyo")).repeat(10)
        for feature in (days, [one.to_pydatetime() for one in days]):
            assert bias_along([0, 1] * 20, [0.5] * 40, feature).label == self.DAYS

    def test_dictionaries_hold_text(self):
        days = np.array([*self.DAYS, "NaT"], dtype="datetime64[D]").repeat(10)
        found = bias_along([0, 1] * 25, [0.5] * 50, days).to_dict()
        assert json.loads(json.dumps(found)) == found
        assert found["minimum"] == [*(f"{day}T00:00:00" for day in self.DAYS), None]


def test_long_names_keep_to_a_line():
    names = ["a\nb", 200 * "x"]
    lines = str(bias_along([0, 0, 1, 1] * 2, [0.5] * 8, names * 4)).splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) < 100
    assert " 0.000 " in lines[1]


def test_many_names_in_an_order_of_their_own():
    pl = pytest.importorskip("polars")
    kinds = [f"kind {i:05}" for i in range(20_000)][::-1]
    feature = pl.Series("kind", kinds[:30] * 2, dtype=pl.Enum(kinds))
    assert bias_along([0, 1] * 30, [0.5] * 60, feature, n_values=50).label == tuple(kinds[:30])
