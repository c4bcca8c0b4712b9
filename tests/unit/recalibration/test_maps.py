"""Maps as values: what they compute and refuse, and their SQL."""

import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="calibrators are scikit-learn estimators")

from calibrant import CalibrantError
from calibrant.recalibration import (
    AdjustedMap,
    LogisticMap,
    NoisyMap,
    PiecewiseLinearMap,
    QuadraticMap,
    SoftmaxMap,
    StepMap,
    TemperatureMap,
)
from tests.tolerances import ROUNDING, nearly

MAPS = {
    "one knot": PiecewiseLinearMap([0.5], [0.3]),
    "identity": PiecewiseLinearMap([0.0, 1.0], [0.0, 1.0]),
    "inner knots": PiecewiseLinearMap([0.2, 0.3, 0.7], [0.1, 0.9, 0.4]),
    "many knots": PiecewiseLinearMap(np.linspace(0, 1, 300), np.random.default_rng(0).random(300)),
    "level": StepMap([], [0.25]),
    "steps": StepMap([0.1, 0.3, 0.5], [0.0, 1.0, 0.2, 0.7]),
    "many steps": StepMap(np.arange(1, 100) / 100, np.random.default_rng(1).random(100)),
    "platt": LogisticMap(0.5, 0.5, -0.1),
    "beta": LogisticMap(2.0, 0.0, 0.3),
    "constant": LogisticMap(0.0, 0.0, -1.0),
    "quadratic": QuadraticMap(0.1, 0.8, 0.1),
    "quadratic, falling square": QuadraticMap(0.1, 0.8, -0.1),
    "quadratic without a square": QuadraticMap(-0.2, 1.3, 0.0),
    "two classes": SoftmaxMap(1.3, 0.01, [0.9, 1.2], [0.1, -0.1]),
    "mixed": AdjustedMap(LogisticMap(0.5, 0.5, -0.1), strength=0.7, mix=0.01),
    "ends": AdjustedMap(StepMap([0.5], [0.1, 0.8]), low=0.2, high=0.9),
}
SCORES = np.concatenate(
    (
        [0.0, 1.0, 0.1, 0.2, 0.3, 0.29999999999999999, 0.5, 5e-324, 1 - 2**-53],
        np.random.default_rng(2).random(100),
    )
)


def test_piecewise_linear_by_hand():
    map_ = PiecewiseLinearMap([0.25, 0.75], [0.5, 0.0])
    assert map_.predict([0.0, 0.25, 0.5, 0.625, 0.75, 1.0]).tolist() == [
        0.5,
        0.5,
        0.25,
        0.125,
        0,
        0,
    ]


def test_rounding_carries_nothing_beyond_the_next_knot():
    # Just below a knot, at the end of a long piece, the line is nearest to overshooting it.
    rng = np.random.default_rng(3)
    for high, low in zip(rng.random(2000), rng.random(2000) * 1e-12, strict=True):
        x = np.array([rng.random() * 1e-3, 1 - rng.random() / 2])
        for y in ([high, low], [low, high]):
            [found] = PiecewiseLinearMap(x, y).predict(np.nextafter(x[1:], 0))
            assert low <= found <= high


def test_steps_by_hand():
    map_ = StepMap([0.25, 0.75], [0.1, 0.2, 0.9])
    assert map_.predict([0.0, 0.25, 0.5, 0.75, 1.0]).tolist() == [0.1, 0.2, 0.2, 0.9, 0.9]


def test_logistic_by_hand():
    # 0.2^2 / (0.2^2 + 0.8^2) = 1/17
    assert LogisticMap(2.0, 2.0, 0.0).predict([0.2])[0] == pytest.approx(1 / 17, rel=ROUNDING)
    # odds of p^a e^c: 0.25 * 3
    assert LogisticMap(1.0, 0.0, np.log(3)).predict([0.25])[0] == pytest.approx(3 / 7, rel=ROUNDING)
    ends = LogisticMap(0.0, 1.0, np.log(3)).predict([0.0, 1.0])
    assert ends.tolist() == pytest.approx([0.75, 1.0])


def test_temperature_by_hand():
    rows = np.array([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    recalibrated = TemperatureMap(0.5)(rows)
    assert recalibrated == nearly(np.array([[2 / 3, 1 / 6, 1 / 6], [1, 0, 0], [0.5, 0.5, 0]]))
    # 0.02^1000 vanishes, and so would 0.03^1000.
    assert TemperatureMap(0.001)(np.array([[0.03, 0.02]])) == nearly(np.array([[1, 0]]))


def test_reflection_by_hand():
    t = np.array([0.25, -0.25, 1.25, 2.25, -1.75, 1.0, 0.0, 2.0, 7.5])
    noise = SimpleNamespace(standard_normal=lambda shape: t.reshape(shape))
    reflected = NoisyMap(1.0, [0.0, 1.0], [0.0, 1.0]).draw(np.zeros(len(t)), noise)
    assert reflected.tolist() == [0.25, 0.25, 0.75, 0.25, 0.25, 1.0, 0.0, 0.0, 0.5]


def test_the_identity_changes_no_bit():
    assert MAPS["identity"].predict(SCORES).tolist() == SCORES.tolist()


@pytest.mark.parametrize("name", MAPS)
def test_sql_in_sqlite_is_predict(name):
    assert_same_in_sql(MAPS[name], run_sqlite)


@pytest.mark.parametrize("name", MAPS)
def test_sql_in_duckdb_is_predict(name):
    duckdb = pytest.importorskip("duckdb")

    def run(query, rows):
        with duckdb.connect() as database:
            database.execute('CREATE TABLE t (i INTEGER, "select p""x" DOUBLE)')
            values = ", ".join(
                f"({i}, {'NULL' if p is None else repr(repr(p))}::DOUBLE)"
                for i, p in enumerate(rows)
            )
            database.execute(f"INSERT INTO t VALUES {values}")
            return [value for (value,) in database.execute(query).fetchall()]

    assert_same_in_sql(MAPS[name], run)
    # nan is greater than any number there.
    query = f"SELECT {MAPS[name].to_sql('p')} FROM (SELECT 'nan'::DOUBLE AS p)"
    assert duckdb.sql(query).fetchall() == [(None,)]


@pytest.mark.parametrize("kind", ["FLOAT", "DECIMAL(5, 3)", "INTEGER"])
def test_sql_of_other_numbers_is_worked_out_in_doubles(kind):
    duckdb = pytest.importorskip("duckdb")
    map_ = MAPS["inner knots"]
    values = [0, 1] if kind == "INTEGER" else [0.25, 0.625, 0.3]
    for value in values:
        query = f"SELECT {map_.to_sql('p')}, p::DOUBLE FROM (SELECT {value}::{kind} AS p)"
        [(recalibrated, p)] = duckdb.sql(query).fetchall()
        assert recalibrated == pytest.approx(map_.predict([p])[0], abs=1e-12)


def assert_same_in_sql(map_, run):
    rows = [*SCORES.tolist(), None, -0.001, 1.001, float("inf")]
    expression = map_.to_sql('select p"x')
    found = run(f"SELECT {expression} FROM t ORDER BY i", rows)
    assert found[len(SCORES) :] == [None] * 4
    assert np.array(found[: len(SCORES)]) == pytest.approx(map_.predict(SCORES), abs=1e-12, rel=0)


def run_sqlite(query, rows):
    database = sqlite3.connect(":memory:")
    try:
        database.execute("SELECT LN(EXP(1.0))")
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no logarithm")
    database.execute('CREATE TABLE t (i INTEGER, "select p""x" DOUBLE)')
    database.executemany("INSERT INTO t VALUES (?, ?)", enumerate(rows))
    found = [value for (value,) in database.execute(query)]
    database.close()
    return found


def test_a_column_is_a_name_and_nothing_else():
    hostile = 'p"; DROP TABLE t; --'
    assert '"p""; DROP TABLE t; --"' in MAPS["level"].to_sql(hostile)
    for wrong in ("", "a\0b", 3, None, ["p"]):
        with pytest.raises(CalibrantError, match="column must be the name of a column"):
            MAPS["level"].to_sql(wrong)


@pytest.mark.parametrize("map_", [NoisyMap(0.1, [0.5], [0.5])])
def test_maps_that_cannot_be_sql_of_one_column(map_):
    with pytest.raises(CalibrantError, match="cannot be written as SQL"):
        map_.to_sql("p")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PiecewiseLinearMap([], []), "x must increase"),
        (lambda: PiecewiseLinearMap([0.5, 0.5], [0, 1]), "x must increase"),
        (lambda: PiecewiseLinearMap([0.5, 0.2], [0, 1]), "x must increase"),
        (lambda: PiecewiseLinearMap([0.5], [0.1, 0.2]), "y must have 1 value"),
        (lambda: PiecewiseLinearMap([[0.5]], [[0.1]]), "x must be one row of numbers"),
        (lambda: PiecewiseLinearMap([0.1, np.nan], [0, 1]), "x must lie in"),
        (lambda: PiecewiseLinearMap([0.1], [1.5]), "y must lie in"),
        (lambda: StepMap([0.5], [0.5]), "values must have 2 values"),
        (lambda: StepMap([1.5], [0.5, 0.5]), "cuts must lie in"),
        (lambda: LogisticMap(-1.0, 1.0, 0.0), "a must be a finite number of at least 0"),
        (lambda: LogisticMap(1.0, 1.0, np.inf), "c must be a finite number; got inf"),
        (lambda: LogisticMap("a", 1.0, 0.0), "a must be a finite number of at least 0; got 'a'"),
        (lambda: LogisticMap(1.0, 1.0, 10**400), "c must be a finite number; got 1000"),
        (lambda: LogisticMap([1.0, 2.0], 1.0, 0.0), "a must be a finite number of at least 0"),
        (lambda: StepMap("abc", [0.5, 0.5]), "cuts must be a list"),
        (lambda: StepMap([0.5], ["a", "b"]), "values must hold numbers; got 'a' at index 0"),
        (lambda: TemperatureMap(0.0), "temperature must be a positive number"),
        (lambda: NoisyMap(-0.1, [0.5], [0.5]), "scale must be a positive number"),
    ],
)
def test_invalid_maps_are_refused(make, words):
    with pytest.raises(CalibrantError, match=words):
        make()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([0.5, 1.2], "must lie in"),
        ([0.5, np.nan], "must be finite"),
        ([], "at least one row"),
        ([[0.1, 0.9]], "shape"),
        (["a"], "must hold numbers"),
    ],
)
def test_predict_checks_what_it_is_given(wrong, words):
    with pytest.raises(CalibrantError, match=words):
        MAPS["steps"].predict(wrong)


def test_maps_are_values():
    one, same, other = (PiecewiseLinearMap([0.1, 0.9], [0.2, y]) for y in (0.8, 0.8, 0.7))
    assert one == same
    assert one != other
    assert one != "a map"
    with pytest.raises((AttributeError, ValueError)):
        one.x[0] = 0.5
    with pytest.raises(AttributeError):
        one.x = np.array([0.5])
    assert [repr(map_) for map_ in (one, MAPS["steps"], NoisyMap(0.1, [0.5], [0.5]))] == [
        "PiecewiseLinearMap(2 knots from 0.1 to 0.9)",
        "StepMap(4 values)",
        "NoisyMap(scale=0.1, then PiecewiseLinearMap(1 knots from 0.5 to 0.5))",
    ]


def test_a_noisy_map_needs_a_generator():
    with pytest.raises(CalibrantError, match="needs a generator"):
        NoisyMap(0.1, [0.5], [0.5]).predict([0.5])
