"""assess: what it reads, what it guesses, what it prints, and how it ends."""

import gzip
import io
import json
import re
import sys

import numpy as np
import pytest

import calibrant as cb
from calibrant import by_group
from calibrant.cli import screen, tables
from tests.cli.conftest import table
from tests.tolerances import assert_nearly_equal

pytest.importorskip("typer")
duckdb = pytest.importorskip("duckdb")

NAMED = ("--label", "y", "--prob", "p")
QUICK = ("--resamples", "50")


@pytest.fixture(scope="module")
def rows():
    """The columns of the table of forecasts."""
    lines = [line.split(",") for line in table().splitlines()[1:]]
    y, p, q, w = np.array([line[:4] for line in lines], dtype=float).T
    return {"y": y, "p": p, "q": q, "w": w, "g": [line[4] for line in lines]}


@pytest.fixture(scope="module")
def whole(rows):
    """What is to be found of all rows."""
    return cb.assess(rows["y"], rows["p"], n_resamples=50).to_dict()


def found(run, *arguments, **options):
    """Return what --json says."""
    done = run("assess", *arguments, *QUICK, "--json", **options)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


# What is printed.


def test_a_verdict_a_table_and_a_picture(run, forecasts):
    done = run("assess", forecasts, *NAMED, *QUICK)
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("Predictions are too high.\nWhere it says ")
    assert "smooth_ece" in done.out
    assert "95% interval" in done.out
    assert "Brier score" in done.out
    assert any("\u2801" <= character <= "\u28ff" for character in done.out)
    assert max(map(len, done.out.splitlines())) <= 80
    assert "\x1b" not in done.out
    assert not any(line.endswith(" ") for line in done.out.splitlines())


def test_json_is_the_assessment(run, forecasts, rows):
    expected = cb.assess(rows["y"], rows["p"], n_resamples=50, level=0.9, n_bins=10, rng=3)
    options = ("--level", "0.9", "--bins", "10", "--seed", "3")
    assert_nearly_equal(found(run, forecasts, *NAMED, *options), expected.to_dict())


def test_weights(run, forecasts, rows):
    expected = cb.assess(rows["y"], rows["p"], sample_weight=rows["w"], n_resamples=50)
    assert_nearly_equal(found(run, forecasts, *NAMED, "--weight", "w"), expected.to_dict())


def test_what_is_not_known_is_null(run, write):
    path = write("one.csv", "p,y\n0.5,1\n0.5,0\n")
    assert found(run, path, *NAMED)["slope"]["value"] is None


def test_bold_on_a_terminal_unless_told_otherwise(run, forecasts, monkeypatch):
    monkeypatch.setattr(screen, "is_terminal", lambda stream: stream is sys.stdout)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[36m" in run("assess", forecasts, *NAMED, *QUICK).out.replace("1;36", "36")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in run("assess", forecasts, *NAMED, *QUICK).out


def test_terminals_that_know_ascii_alone_see_a_picture_too(run, forecasts, monkeypatch):
    monkeypatch.setattr(screen, "is_plain", lambda: True)
    out = run("assess", forecasts, *NAMED, *QUICK).out
    assert out.isascii()
    assert "+-----" in out


@pytest.mark.parametrize(
    ("encoding", "plain"), [("utf-8", False), ("ascii", True), ("cp1252", True)]
)
def test_what_terminals_know(monkeypatch, encoding, plain):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding))
    assert screen.is_plain() == plain


def test_side_by_side_where_there_is_room(run, forecasts, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    (line,) = (
        line
        for line in run("assess", forecasts, *NAMED, *QUICK).out.splitlines()
        if line.startswith("smooth_ece")
    )
    assert "\u2502" in line


# What is guessed.


def test_guesses_are_said(run, write):
    path = write("rain.csv", "probability,rain\n0.3,0\n0.1,0\n0.8,1\n")
    done = run("assess", path, *QUICK)
    assert done.code == 0
    assert done.err == "calibrant: taking --prob 'probability' and --label 'rain'\n"


def test_only_what_is_not_named_is_guessed(run, forecasts):
    done = run("assess", forecasts, "--prob", "q", *QUICK)
    assert done.err == "calibrant: taking --label 'y'\n"


def test_usual_names_go_before_contents(run, write):
    # w would fit, too, and p does not even fit: a percentage is then refused, not overlooked.
    path = write("named.csv", "p,w,label\n30,0.5,0\n70,0.25,1\n")
    done = run("assess", path)
    assert "prob column 'p' must lie in [0, 1]" in done.err


# What is read.


def written(folder, form):
    """Write the table of forecasts in another format."""
    plain = folder / "forecasts.csv"
    relation = duckdb.read_csv(str(plain))
    path = folder / f"again.{form}"
    if form == "csv.gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif form == "tsv":
        path.write_text(plain.read_text().replace(",", "\t"))
    elif form == "parquet":
        relation.write_parquet(str(path))
    else:
        lines = [
            json.dumps(dict(zip(relation.columns, row, strict=True))) for row in relation.fetchall()
        ]
        path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("form", ["csv.gz", "tsv", "parquet", "jsonl"])
def test_formats_and_pipes(run, forecasts, tmp_path, whole, form):
    path = written(tmp_path, form)
    assert_nearly_equal(found(run, path, *NAMED), whole)
    assert_nearly_equal(found(run, "-", *NAMED, stdin=path.read_bytes()), whole)


def test_a_pipe_of_tabs_under_its_name(run, forecasts, tmp_path, whole):
    content = written(tmp_path, "tsv").read_bytes()
    assert_nearly_equal(found(run, "-", *NAMED, "--format", "tsv", stdin=content), whole)


def test_what_is_wrong_in_a_pipe_is_in_standard_input(run):
    done = run("assess", "-", *NAMED, stdin=b"p,y\n0.5,1\n7,0\n")
    assert done.code == 2
    assert "got 7.0 in row 2 of standard input.csv" in done.err
    done = run("assess", "-", "--label", "z", "--prob", "p", stdin=b"p,y\n0.5,1\n")
    assert done.err.startswith("calibrant: standard input: there is no column 'z'")


def test_a_cut_gzip_pipe(run):
    done = run("assess", "-", *NAMED, stdin=b"\x1f\x8bjunk")
    assert done.code == 2
    assert "standard input begins like gzip but is not" in done.err


def test_several_files_and_patterns(run, write, whole):
    header, *lines = table().splitlines(keepends=True)
    write("part1.csv", header + "".join(lines[:150]))
    # Columns are found by name, in whatever order; a file without rows is none the worse.
    write(
        "part2.csv", "y,p\n" + "".join(",".join(line.split(",")[:2]) + "\n" for line in lines[150:])
    )
    write("part3.csv", header)
    assert_nearly_equal(found(run, "part*.csv", *NAMED), whole)
    assert_nearly_equal(found(run, "part1.csv", "part2.csv", *NAMED), whole)


def test_rows_of_several_files_are_told_apart(run, write):
    one, two = write("one.csv", "p,y\n0.5,1\n"), write("two.csv", "p,y\n0.5,1\n0.5,1.5\n0.1,0.2\n")
    done = run("assess", one, two, *NAMED)
    assert "got 1.5 in row 3 of all files" in done.err


def test_rows_that_make_no_sense_can_be_left_out(run, write):
    path = write("holes.csv", "p,y\n0.5,1\n,0\n1.5,1\n0.25,0\n0.75,\n0.3,2\n")
    done = run("assess", path, *NAMED, *QUICK, "--on-invalid", "drop")
    assert done.code == 0
    assert "n = 2," in done.out
    assert done.err == (
        "calibrant: 4 rows of 6 left out: 1 with null or nan in 'p', 1 with 'p' outside [0, 1], "
        "1 with null or nan in 'y', 1 with 'y' outside [0, 1]\n"
    )


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ("wet dry", "wet"),
        ("1 -1", "1"),
        ("true false", "true"),
        ("yes no", "yes"),
        ("True False", "true"),
        ("2.5 1", "2.5"),
    ],
)
def test_outcomes_under_other_names(run, write, whole, labels, positive):
    yes, no = labels.split()
    header, *lines = table().splitlines(keepends=True)
    renamed = [(yes if line[0] == "1" else no) + line[1:] for line in lines]
    path = write("renamed.csv", header + "".join(renamed))
    assert_nearly_equal(found(run, path, *NAMED, "--pos-label", positive), whole)


# Large tables.


def test_outcomes_under_other_names_in_large_tables(run, write, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 399)
    header, *lines = table().splitlines(keepends=True)
    renamed = [("ja" if line[0] == "1" else "nein") + line[1:] for line in lines]
    path = write("renamed.csv", header + "".join(renamed))
    done = run("assess", path, *NAMED, "--pos-label", "ja", *QUICK, "--json")
    assert done.err == "calibrant: there are more than 399 rows: they are kept as a sketch\n"
    assert json.loads(done.out)["n"] == 400


def test_more_rows_than_memory_should_hold_become_a_sketch(run, forecasts, rows, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 399)
    done = run("assess", forecasts, *NAMED, *QUICK, "--json")
    expected = cb.assess(cb.Sketch().update(rows["y"], rows["p"]), n_resamples=50)
    assert_nearly_equal(json.loads(done.out)["estimates"], expected.to_dict()["estimates"])
    assert done.err == "calibrant: there are more than 399 rows: they are kept as a sketch\n"
    by = json.loads(run("assess", forecasts, *NAMED, *QUICK, "--by", "g", "--json").out)
    assert [row["group"] for row in by["rows"]] == ["a", "b", "c"]
    assert by["by"] == ["g"]


def test_rows_left_out_count_as_rows_read(run, write, monkeypatch):
    monkeypatch.setattr(tables, "MOST_ROWS", 3)
    path = write("holes.csv", "p,y\n,1\n,0\n0.5,1\n0.5,0\n0.25,0\n")
    done = run("assess", path, *NAMED, *QUICK, "--on-invalid", "drop", "--json")
    assert json.loads(done.out)["n"] == 3
    assert "2 rows of 5 left out" in done.err


def test_a_sketch_stands_in_for_its_rows(run, forecasts, tmp_path):
    assert run("sketch", forecasts, *NAMED, "--out", "f.sketch").code == 0
    expected = cb.assess(cb.Sketch.load(tmp_path / "f.sketch"), n_resamples=50).to_dict()
    assert_nearly_equal(found(run, "f.sketch"), expected)
    assert_nearly_equal(found(run, "-", stdin=(tmp_path / "f.sketch").read_bytes()), expected)


# Classes.


@pytest.fixture
def classes(write):
    """Return the path of a table of three classes, and its columns."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1, 1, 1], 200).round(4)
    p[:, 2] = (1 - p[:, 0] - p[:, 1]).round(4)
    truth = [rng.choice(3, p=row / row.sum()) for row in p]
    names = ["cat", "car", "dog"]
    lines = [f"{names[t]},{t},{','.join(map(str, row))}\n" for t, row in zip(truth, p, strict=True)]
    path = write("classes.csv", "animal,number,p_cat,p_car,p_dog\n" + "".join(lines))
    return path, np.array(names)[truth], p, names


def test_classes_are_called_as_their_columns_end(run, classes):
    path, y, p, names = classes
    expected = cb.assess(y, p, labels=names, n_resamples=50).to_dict()
    assert_nearly_equal(found(run, path, "--label", "animal", "--classes", "p_*"), expected)
    assert [row["label"] for row in expected["classes"]] == names


def test_classes_under_given_names_and_numbers(run, classes):
    path, _, _, _ = classes
    numbered = found(run, path, "--label", "number", "--classes", "p_*")
    assert [row["label"] for row in numbered["classes"]] == ["0", "1", "2"]
    given = [f"--classes={name}=p_{name}" for name in ("dog", "car", "cat")]
    named = found(run, path, "--label", "animal", *given)
    assert [row["label"] for row in named["classes"]] == ["dog", "car", "cat"]
    assert_nearly_equal(named["estimates"], numbered["estimates"])


def test_one_class_against_the_rest(run, classes):
    path, y, p, names = classes
    expected = cb.assess(y, p, labels=names, multiclass="car", n_resamples=50).to_dict()
    options = ("--label", "animal", "--classes", "p_*", "--multiclass", "car")
    assert_nearly_equal(found(run, path, *options), expected)


def test_classes_are_listed(run, classes):
    done = run("assess", classes[0], "--label", "animal", "--classes", "p_*", *QUICK)
    assert "\ncat " in done.out
    # recalibrate has a Brier score of all classes.
    means = " ".join(done.out.split()).partition("n = ")[2]
    assert re.search(
        r"accuracy 0\.\d+, mean confidence 0\.\d+, Brier score of the confidence 0", means
    )


# Groups.


def test_groups(run, forecasts, rows):
    expected = by_group(rows["y"], rows["p"], rows["g"], n_resamples=50)
    named = expected.to_dict() | {"by": ["g"]}
    assert_nearly_equal(found(run, forecasts, *NAMED, "--by", "g"), named)
    done = run("assess", forecasts, *NAMED, "--by", "g", *QUICK)
    assert [line.split()[0] for line in done.out.splitlines()[:4]] == ["group", "a", "b", "c"]
    # The direction of the error stays where not all columns fit.
    assert {"observed", "predicted"} <= {*done.out.splitlines()[0].split()}


def test_rows_without_a_group_and_groups_that_are_numbers(run, write):
    path = write("g.csv", "p,y,g\n0.5,1,10\n0.25,0,9\n0.75,1,\n0.5,0,10\n")
    by = found(run, path, *NAMED, "--by", "g")
    assert [(row["group"], row["n"]) for row in by["rows"]] == [(9, 1), (10, 2), (None, 1)]
    done = run("assess", path, *NAMED, "--by", "g", "--fail-if", "n < 2", *QUICK)
    assert "\n(none) " in done.out
    assert "None" not in done.out
    assert done.err.endswith("calibrant: group (none): n is 1, which is < 2\n")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_groups_of_64_bit_numbers_are_told_apart(run, tmp_path, monkeypatch, form):
    first = 1_700_000_000_000_000_000
    rows = f"SELECT 0.5 AS p, i % 2 AS y, {first} + i // 2 AS id FROM range(40) t(i)"
    kind = {"jsonl": "json"}.get(form, form)
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/rows.{form}' (FORMAT {kind})")
    expected = [(first + i, 2) for i in range(20)]
    by = found(run, f"rows.{form}", *NAMED, "--by", "id")
    assert [(row["group"], row["n"]) for row in by["rows"]] == expected
    monkeypatch.setattr(tables, "MOST_ROWS", 10)
    by = json.loads(run("assess", f"rows.{form}", *NAMED, "--by", "id", *QUICK, "--json").out)
    assert [(row["group"], row["n"]) for row in by["rows"]] == expected


def test_words_for_nothing_are_names_of_groups(run, write, monkeypatch):
    names = ("NA", "null", ".", "", "FR")
    rows = "".join(f"0.5,{i % 2},{name}\n" for name in names for i in range(4))
    path = write("g.csv", "p,y,country\n" + rows)
    for limit in (100, 10):
        monkeypatch.setattr(tables, "MOST_ROWS", limit)
        done = run("assess", path, *NAMED, "--by", "country", *QUICK, "--json")
        groups = [row["group"] for row in json.loads(done.out)["rows"]]
        assert groups == [".", "FR", "NA", "null", None]


def test_words_for_nothing_are_names_of_classes(run, write):
    rows = "NA,0.75,0.25\nEU,0.5,0.5\nNA,0.5,0.5\n,0.5,0.5\n"
    path = write("c.csv", "label,p_NA,p_EU\n" + rows)
    options = ("--label", "label", "--classes", "p_*", "--on-invalid", "drop", *QUICK, "--json")
    done = run("assess", path, *options)
    assert done.err == "calibrant: 1 row of 4 left out: 1 with null or nan in 'label'\n"
    assert json.loads(done.out)["n"] == 3


def test_groups_that_are_numbers_in_one_file_and_text_in_another_are_text(run, write, monkeypatch):
    rows = [f"p,y,g\n0.5,1,{one}\n0.5,0,{two}\n" for one, two in (("1", "2"), ("1", "a"))]
    paths = [write(f"{i}.csv", content) for i, content in enumerate(rows)]
    for limit in (100, 3):
        monkeypatch.setattr(tables, "MOST_ROWS", limit)
        by = json.loads(run("assess", *paths, *NAMED, "--by", "g", *QUICK, "--json").out)
        assert [(row["group"], row["n"]) for row in by["rows"]] == [("1", 2), ("2", 1), ("a", 1)]


def test_truth_values_and_numbers_in_groups_of_json_are_told_apart(run, write, monkeypatch):
    rows = "".join(f'{{"p":0.5,"y":{i % 2},"g":{one}}}\n' for one in ("true", 1) for i in range(4))
    path = write("g.jsonl", rows)
    for limit in (100, 3):
        monkeypatch.setattr(tables, "MOST_ROWS", limit)
        by = json.loads(run("assess", path, *NAMED, "--by", "g", *QUICK, "--json").out)
        assert [(row["group"], row["n"]) for row in by["rows"]] == [("1", 4), ("True", 4)]


def test_truth_values_with_gaps_are_groups(run, tmp_path):
    rows = "SELECT 0.5 AS p, 1 AS y, unnest([true, false, NULL]) AS g"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/rows.parquet'")
    by = found(run, "rows.parquet", *NAMED, "--by", "g")
    assert [row["group"] for row in by["rows"]] == [False, True, None]


@pytest.mark.parametrize("folder", ["y=1", "w=5", "p=0.5"])
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_columns_of_a_file_win_over_names_of_folders(run, forecasts, tmp_path, folder, form):
    path = written(tmp_path, form) if form != "csv" else forecasts
    (tmp_path / folder).mkdir()
    moved = path.rename(tmp_path / folder / path.name)
    rows = [line.split(",") for line in table().splitlines()[1:]]
    y, w = (np.array([row[i] for row in rows], dtype=float) for i in (0, 3))
    prevalence = found(run, moved, *NAMED, "--weight", "w")["prevalence"]
    assert prevalence == pytest.approx(np.average(y, weights=w), rel=1e-12)  # sums round


def test_a_wide_file_is_looked_at_once(run, write, whole, asked_of_duckdb):
    header, *lines = table().splitlines()
    wide = [header + "".join(f",x{i}" for i in range(50)), *(line + ",7" * 50 for line in lines)]
    path = write("wide.csv", "\n".join(wide))
    assert found(run, path, *NAMED) == whole
    assert sum("sniff_csv" in one for one in asked_of_duckdb) == 1
    assert all("auto_detect=false" in one for one in asked_of_duckdb if "read_csv" in one)


def test_blank_lines_before_the_header(run, write, whole):
    assert found(run, write("blank.csv", "\n\n" + table()), *NAMED) == whole


# How it ends.


def test_thresholds_that_hold_end_with_1_whatever_is_printed(run, forecasts):
    limits = ("--fail-if", "smooth_ece.high > 0.05", "--fail-if", "n >= 1000")
    done = run("assess", forecasts, *NAMED, *QUICK, *limits)
    assert done.code == 1
    assert done.err.startswith("calibrant: smooth_ece.high is 0.")
    assert done.err.endswith(", which is > 0.05\n")
    done = run("assess", forecasts, *NAMED, *QUICK, *limits, "--json")
    assert done.code == 1
    assert json.loads(done.out)["n"] == 400


def test_thresholds_that_do_not_hold_end_with_0(run, forecasts):
    done = run("assess", forecasts, *NAMED, *QUICK, "--fail-if", "smooth_ece.low>0.9")
    assert (done.code, done.err) == (0, "")


def test_thresholds_are_about_every_group(run, forecasts):
    done = run("assess", forecasts, *NAMED, *QUICK, "--by", "g", "--fail-if", "n < 134")
    assert done.code == 1
    assert done.err == (
        "calibrant: group 'b': n is 133, which is < 134\n"
        "calibrant: group 'c': n is 133, which is < 134\n"
    )


def test_a_threshold_that_cannot_be_decided(run, write):
    path = write("certain.csv", "p,y\n0,0\n1,1\n")
    done = run("assess", path, *NAMED, *QUICK, "--fail-if", "p_value < 0.05")
    assert done.code == 2
    assert "p_value is not known here" in done.err


# Decisions.


def test_the_regret_at_a_threshold(run, forecasts, rows):
    expected = cb.threshold_regret(rows["y"], rows["p"], 0.25, n_resamples=50)
    shown = found(run, forecasts, *NAMED, "--threshold", "0.25")["regret"]
    assert_nearly_equal(shown, expected.to_dict())
    done = run("assess", forecasts, *NAMED, *QUICK, "--threshold", "0.25")
    assert "regret at 0.25" in done.out
    asked = ("--threshold", "0.25", "--fail-if")
    done = run("assess", forecasts, *NAMED, *QUICK, *asked, "regret.high > 0.002")
    assert done.code == 1
    assert "regret.high is " in done.err
    assert run("assess", forecasts, *NAMED, *QUICK, *asked, "regret > 0.9").code == 0


def test_what_thresholds_are_refused(run, forecasts):
    done = run("assess", forecasts, *NAMED, "--fail-if", "regret.high > 0.002")
    assert done.code == 2
    assert "regret in --fail-if needs a threshold: add --threshold T" in done.err
    done = run("assess", forecasts, *NAMED, "--threshold", "25")
    assert done.code == 2
    assert "--threshold must lie strictly between 0 and 1; got 25" in done.err
    done = run("assess", forecasts, *NAMED, "--by", "g", "--threshold", "0.25")
    assert done.code == 2
    assert "--threshold is for all rows together" in done.err
