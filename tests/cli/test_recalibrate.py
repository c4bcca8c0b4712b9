"""recalibrate: fit, save the calibrator, and recalibrate tables with it."""

import json

import numpy as np
import pytest

from tests.cli.conftest import table
from tests.tolerances import nearly

pytest.importorskip("typer")
pytest.importorskip("sklearn")
duckdb = pytest.importorskip("duckdb")

FIT = ("--label", "y", "--prob", "p", "--method", "platt", "--method", "isotonic")
QUICK = ("--resamples", "50")


def test_methods_are_judged(run, forecasts):
    done = run("recalibrate", forecasts, *FIT, *QUICK)
    assert done.code == 0
    assert ": on held-out rows " in " ".join(done.out.split())
    assert [line.split()[0] for line in done.out.splitlines()[-3:]] == ["as", "platt", "isotonic"]


def test_json(run, forecasts):
    done = run("recalibrate", forecasts, *FIT, *QUICK, "--json")
    content = json.loads(done.out)
    assert content["method"] in ("platt", "isotonic")
    assert len(content["held_out"]) == 400


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_other_tables_are_recalibrated_by_a_saved_calibrator(run, write, forecasts, tmp_path, form):
    from calibrant.recalibration import load

    assert run("recalibrate", forecasts, *FIT, *QUICK, "--save", "m.json").code == 0
    # The first column stays as it is written, though it looks like numbers.
    new = write("new.csv", 'code,p,p q\n7.00,0.25,x\n1.50,0.5,\n,1,"a,b"\n')
    done = run("recalibrate", new, "--using", "m.json", "--prob", "p", "--out", f"out.{form}")
    assert done.err == f"calibrant: wrote out.{form}, with the column 'p_recalibrated'\n"
    read = duckdb.read_parquet if form == "parquet" else duckdb.read_csv
    options = {} if form == "parquet" else {"all_varchar": True}
    out = read(str(tmp_path / f"out.{form}"), **options)
    assert out.columns == ["code", "p", "p q", "p_recalibrated"]
    codes, _, words, recalibrated = zip(*out.fetchall(), strict=True)
    assert codes == ("7.00", "1.50", None)
    assert words == ("x", None, "a,b")
    expected = load(tmp_path / "m.json").predict(np.array([0.25, 0.5, 1.0]))
    np.testing.assert_allclose(np.array(recalibrated, dtype=float), expected, rtol=1e-12)


def test_a_page_of_before_and_after(run, forecasts, tmp_path):
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    done = run("recalibrate", forecasts, *FIT, *QUICK, "--report", "page.html")
    assert done.err == "calibrant: wrote page.html\n"
    page = (tmp_path / "page.html").read_text()
    assert "as given" in page
    assert ", held out" in page
    again = run("recalibrate", forecasts, "--using", "m.json", "--prob", "p", "--report", "x.html")
    assert again.code == 2


def test_the_table_itself_can_be_recalibrated(run, forecasts, tmp_path):
    assert run("recalibrate", forecasts, *FIT, *QUICK, "--out", "out.parquet").code == 0
    assert duckdb.read_parquet(str(tmp_path / "out.parquet")).columns[-1] == "p_recalibrated"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("p\n0.5\n1.5\n", "got 1.5 in row 2 of bad.csv"),
        ("p,p_recalibrated\n0.5,0.5\n", "there is a column 'p_recalibrated' already"),
    ],
)
def test_tables_that_cannot_be_recalibrated(run, write, forecasts, tmp_path, content, words):
    assert run("recalibrate", forecasts, *FIT, *QUICK, "--save", "m.json").code == 0
    bad = write("bad.csv", content)
    before = set(tmp_path.iterdir())
    done = run("recalibrate", bad, "--using", "m.json", "--prob", "p", "--out", "out.csv")
    assert done.code == 2
    assert words in done.err
    assert set(tmp_path.iterdir()) == before


def test_nothing_is_fitted_where_the_table_cannot_be_written(run, write, tmp_path):
    path = write("has.csv", "y,p,p_recalibrated\n" + "1,0.5,0.5\n0,0.4,0.4\n" * 20)
    done = run(
        "recalibrate", path, "--label", "y", "--prob", "p", "-o", "o.csv", "--save", "c.json"
    )
    assert done.code == 2
    assert "there is a column 'p_recalibrated' already" in done.err
    assert done.out == ""
    assert not (tmp_path / "c.json").exists()


def test_standard_input_is_fitted_and_recalibrated(run, forecasts, tmp_path):
    content = forecasts.read_bytes()
    assert run("recalibrate", forecasts, *FIT, *QUICK, "--out", "a.csv").code == 0
    done = run("recalibrate", "-", *FIT, *QUICK, "--out", "b.csv", stdin=content)
    assert done.code == 0
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()


def test_sketches_are_refused(run, forecasts):
    named = ("--label", "y", "--prob", "p")
    assert run("sketch", forecasts, *named, "--out", "f.sketch").code == 0
    done = run("recalibrate", "f.sketch")
    assert done.code == 2
    assert "give the rows" in done.err


@pytest.fixture
def classes(write):
    """Return the path of a table of three classes, and their probabilities."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 150)
    truth = [rng.choice(["cat", "dog", "fox"], p=row) for row in p]
    lines = [
        f"{name},{','.join(map(repr, row))}\n" for name, row in zip(truth, p.tolist(), strict=True)
    ]
    return write("classes.csv", "class,p_cat,p_dog,p_fox\n" + "".join(lines)), p


@pytest.mark.parametrize("method", ["temperature", "platt"])
def test_one_recalibrated_column_per_class(run, classes, tmp_path, method):
    from calibrant.recalibration import load

    path, p = classes
    fit = ("--label", "class", "--classes", "p_*", "--method", method, "--level", "0.001", *QUICK)
    done = run("recalibrate", path, *fit, "--save", "m.json", "--out", "m.parquet")
    assert done.code == 0
    # Not what assess calls the Brier score.
    assert "brier, all classes" in done.out
    names = [f"p_{name}_recalibrated" for name in ("cat", "dog", "fox")]
    assert done.err.endswith(f"wrote m.parquet, with the columns {', '.join(map(repr, names))}\n")
    recalibrated = duckdb.read_parquet(str(tmp_path / "m.parquet")).fetchnumpy()
    expected = load(tmp_path / "m.json").predict(p)
    assert np.stack([recalibrated[name] for name in names], axis=1) == nearly(expected)
    given = [f"--classes=p_{name}" for name in ("cat", "dog", "fox")]
    for probs in (["--classes", "p_*"], given):
        assert run("recalibrate", path, "--using", "m.json", *probs, "--out", "a.parquet").code == 0
        again = duckdb.read_parquet(str(tmp_path / "a.parquet")).fetchnumpy()
        assert all(again[name] == nearly(recalibrated[name]) for name in names)
    done = run("recalibrate", path, "--using", "m.json", "--prob", "p_cat", "--out", "x.csv")
    assert done.code == 2
    assert done.err == "calibrant: --prob must have 3 columns, as when fitted; got 1\n"


def test_rows_left_out_stay_in_the_table_as_given(run, write, tmp_path):
    holes = "2,0.5,0,1,a\n0,NA,0.5,1,a\n1,1.5,0,1,b\n"
    path = write("holes.csv", table().replace("\n", f"\n{holes}", 1))
    done = run("recalibrate", path, *FIT, *QUICK, "--on-invalid", "drop", "--out", "out.csv")
    assert done.code == 0
    assert "3 rows of 403 left out" in done.err
    assert done.err.endswith("with the column 'p_recalibrated', empty in 2 of its rows\n")
    out = duckdb.read_csv(str(tmp_path / "out.csv"), all_varchar=True).fetchall()
    assert len(out) == 403
    assert [row[1] for row in out[:3]] == ["0.5", "NA", "1.5"]
    assert [row[-1] is None for row in out[:4]] == [False, True, True, False]


def test_outcomes_all_alike_get_a_warning(run, write):
    path = write("ones.csv", "p,y\n" + "".join(f"0.{i},1\n" for i in range(100, 200)))
    done = run("recalibrate", path, *FIT, *QUICK, "--json")
    assert done.code == 0
    assert done.err.startswith("calibrant: all outcomes are alike: recalibrated probabilities are ")


def test_help_says_that_there_is_one_model(run):
    text = " ".join(run("recalibrate", "--help").out.split())
    assert "Probabilities of one model: COLUMN, or NAME=COLUMN." in text
    assert "several models" not in text
