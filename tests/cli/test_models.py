"""What columns mean in every command: models, classes, percentages, fields, groups."""

import inspect
import json

import numpy as np
import pytest

import calibrant as cb
from tests.tolerances import assert_nearly_equal

pytest.importorskip("typer")
pytest.importorskip("duckdb")

from calibrant.cli import draw_commands, measure_commands, recalibrate_command, tables

QUICK = ("--resamples", "39")
RNG = np.random.default_rng(5)
N = 200
P = RNG.random(N).round(4)
Q = (P**2).round(4)
Y = (RNG.random(N) < P).astype(int)
SITE, YEAR = RNG.choice(["a", "b"], N), RNG.choice([2020, 2021], N)


def csv(**columns):
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)])


@pytest.fixture
def path(write):
    return write("rows.csv", csv(y=Y, p=P, q=Q, site=SITE, year=YEAR))


def read(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_several_probs_are_models_in_assess(run, path):
    given = ("--label", "y", "--prob", "p", "--prob", "second=q", *QUICK)
    found = read(run("assess", path, *given, "--json"))
    assert list(found) == ["p", "second"]
    for name, p in (("p", P), ("second", Q)):
        assert_nearly_equal(found[name], cb.assess(Y, p, n_resamples=39).to_dict())
    shown = run("assess", path, *given).out
    assert shown.startswith("p\n\n")
    assert "\n\nsecond\n\n" in shown
    by = read(run("assess", path, *given, "--by", "site", "--json"))
    assert [row["group"] for row in by["second"]["rows"]] == ["a", "b"]


def test_thresholds_name_the_model(run, path):
    given = ("--label", "y", "--prob", "p", "--prob", "q", *QUICK)
    done = run("assess", path, *given, "--fail-if", "smooth_ece.low > 0.01")
    assert done.code == 1
    assert done.err.startswith("calibrant: q: smooth_ece.low is ")
    done = run("assess", path, *given, "--by", "site", "--fail-if", "n < 1000")
    assert "calibrant: q, group 'b': n is " in done.err


def test_several_probs_are_models_in_sketch(run, path, tmp_path):
    done = run("sketch", path, "--label", "y", "--prob", "p", "--prob", "q", "-o", "{}.sketch")
    assert done.code == 0
    for name, p in (("p", P), ("q", Q)):
        assert cb.Sketch.load(tmp_path / f"{name}.sketch").allclose(cb.Sketch().update(Y, p))


def test_labels_that_name_the_columns_do_not_make_them_classes(run, write):
    path = write("rows.csv", csv(y=["p", "q"] * 20, p=P[:40], q=1 - P[:40]))
    done = run("report", path, "--label", "y", "--prob", "p", "--prob", "q", "-o", "x.html")
    assert done.code == 2
    assert "name the positive one with --pos-label" in done.err


@pytest.mark.parametrize("written", ["{:g}", "{:g}%", "{:g} %"])
@pytest.mark.parametrize("limit", [1000, 10])
def test_percentages(run, write, monkeypatch, written, limit):
    monkeypatch.setattr(tables, "MOST_ROWS", limit)
    percent = [written.format(100 * p) for p in P]
    path = write("rows.csv", csv(y=Y, p=percent))
    given = ("--label", "y", "--prob", "p", "--percent", *QUICK, "--json")
    found = read(run("assess", path, *given))
    assert found["mean_prediction"] == pytest.approx(P.mean(), rel=1e-9)


def test_percentages_stay_percentages_when_recalibrated(run, write, tmp_path):
    pytest.importorskip("sklearn")
    path = write("rows.csv", csv(y=Y, p=100 * Q))
    given = ("--label", "y", "--prob", "p", "--percent", "--level", "0.01", *QUICK)
    assert run("recalibrate", path, *given, "-o", "new.csv").code == 0
    table = np.genfromtxt(tmp_path / "new.csv", delimiter=",", names=True)
    assert table["p_recalibrated"].mean() == pytest.approx(100 * Y.mean(), abs=2)


def test_probabilities_taken_for_percentages_are_noticed(run, write):
    path = write("rows.csv", csv(y=Y, p=P / 100))
    done = run("assess", path, "--label", "y", "--prob", "p", "--percent", *QUICK)
    assert done.err == "calibrant: --percent: no prediction is above 1%; is it needed?\n"
    over = write("over.csv", csv(y=Y, p=150 * P))
    done = run("assess", over, "--label", "y", "--prob", "p", "--percent")
    assert "must lie in [0, 1]" in done.err
    assert "percentages? 100 is the maximum, or leave such rows out with --on-inv" in done.err


@pytest.mark.parametrize("limit", [1000, 10])
def test_fields_of_structures(run, write, tmp_path, monkeypatch, limit):
    import duckdb

    monkeypatch.setattr(tables, "MOST_ROWS", limit)
    # The first is an integer, which must not make integers of the others.
    p = [1, *P[1:].tolist()]
    rows = [
        json.dumps({"truth": {"y": y}, "scores": {"confidence": one, "by": {"site": site}}})
        for y, one, site in zip(Y.tolist(), p, SITE.tolist(), strict=True)
    ]
    path = write("rows.jsonl", "\n".join(rows))
    duckdb.read_json(str(path)).write_parquet(str(tmp_path / "rows.parquet"))
    given = ("--label", "truth.y", "--prob", "scores.confidence", "--by", "scores.by.site")
    for file in (path, tmp_path / "rows.parquet"):
        found = read(run("assess", file, *given, *QUICK, "--json"))
        assert [row["group"] for row in found["rows"]] == ["a", "b"]
        means = [np.mean(np.array(p)[SITE == site]) for site in "ab"]
        assert [row["mean_prediction"] for row in found["rows"]] == pytest.approx(means, rel=1e-9)


def test_fields_are_inferred_and_listed(run, write):
    rows = [
        json.dumps({"y": y, "s": {"p": p}}) for y, p in zip(Y.tolist(), P.tolist(), strict=True)
    ]
    path = write("rows.jsonl", "\n".join(rows))
    done = run("assess", path, *QUICK)
    assert done.err == "calibrant: taking --prob 's.p' and --label 'y'\n"
    assert "the columns are 'y', 's', 's.p'" in run("assess", path, "--prob", "s.q").err


def test_groups_of_several_columns(run, path):
    given = ("--label", "y", "--prob", "p", "--by", "site", "--by", "year", *QUICK)
    found = read(run("assess", path, *given, "--json"))
    expected = cb.by_group(Y, P, {"site": SITE, "year": YEAR}, n_resamples=39)
    assert_nearly_equal(found, expected.to_dict())
    assert "\na, 2021 " in run("assess", path, *given).out
    done = run("assess", path, *given, "--fail-if", "n < 1000")
    assert "calibrant: group a, 2020: n is " in done.err


def test_clusters(run, write):
    day = np.arange(N) // 5
    path = write("rows.csv", csv(y=Y, p=P, site=SITE, day=day))
    given = ("--label", "y", "--prob", "p", "--clusters", "day", *QUICK, "--json")
    found = read(run("assess", path, *given, "--by", "site"))
    assert_nearly_equal(
        found, cb.by_group(Y, P, {"site": SITE}, clusters=day, n_resamples=39).to_dict()
    )
    found = read(run("assess", path, *given))
    assert_nearly_equal(found, cb.assess(Y, P, clusters=day, n_resamples=39).to_dict())


@pytest.mark.parametrize("command", ["plot", "report"])
def test_groups_of_several_columns_are_drawn(run, path, command, tmp_path):
    pytest.importorskip("jinja2")
    out = {"plot": "x.svg", "report": "x.html"}[command]
    given = ("--label", "y", "--prob", "p", "--by", "site", "--by", "year", *QUICK)
    assert run(command, path, *given, "-o", out).code == 0
    if command == "report":
        assert "<bdi>a, 2021</bdi>" in (tmp_path / out).read_text()


@pytest.mark.parametrize("limit", [1000, 10])
def test_words_are_outcomes(run, write, monkeypatch, limit):
    monkeypatch.setattr(tables, "MOST_ROWS", limit)
    for words in (("no", "yes"), ("N", "Y"), ("False", "true")):
        path = write("rows.csv", csv(y=np.array(words)[Y], p=P))
        found = read(run("assess", path, "--label", "y", "--prob", "p", *QUICK, "--json"))
        assert found["prevalence"] == pytest.approx(Y.mean())


def test_counts_have_separators(run, write):
    path = write("rows.csv", csv(y=np.tile(Y, 6), p=np.tile(P, 6)))
    given = ("--label", "y", "--prob", "p", *QUICK)
    assert "n = 1,200, " in run("assess", path, *given).out
    assert run("sketch", path, *given[:4], "-o", "x.sketch").err.endswith(": 1,200 rows\n")


NAMES = {"n_bins": "bins", "n_resamples": "resamples", "rng": "seed", "cv": "folds"}


@pytest.mark.parametrize(
    ("command", "functions"),
    [
        (measure_commands.assess, [cb.assess, cb.by_group]),
        (measure_commands.compare, [cb.compare]),
        (draw_commands.report, [cb.report]),
        (recalibrate_command.recalibrate, ["recalibrate"]),
    ],
)
def test_defaults_are_those_of_python(command, functions):
    if functions == ["recalibrate"]:
        functions = [pytest.importorskip("calibrant.recalibration").recalibrate]
    options = inspect.signature(command).parameters
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            option = NAMES.get(name, name)
            if option in options and name not in ("sample_weight", "method"):
                assert options[option].default in (parameter.default, inspect.Parameter.empty), name
