"""Files: the formats that are read, and what hostile ones are told."""

import datetime as dt
import gzip
import re
import sys

import narwhals as nw
import numpy as np
import pytest

from calibrant import CalibrantError, MissingDependencyError, Sketch, sketch
from calibrant.io import files

duckdb = pytest.importorskip("duckdb")

GOOD = b"p,y\n0.5,1\n0.25,0\n"
EXPECTED = Sketch().update([1, 0], [0.5, 0.25])


@pytest.fixture(params=["streamed", "pushed down"])
def way(request, monkeypatch):
    """Read files both ways: as rows by way of pyarrow, and without pyarrow as cells."""
    if request.param == "streamed":
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setattr(files, "find_spec", lambda name: None)


@pytest.fixture
def at(tmp_path):
    """Return a function that writes a file and names it."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    return write


def refusal(source, **options):
    """Return the sentence with which a source is refused."""
    with pytest.raises(CalibrantError) as caught:
        sketch(source, **{"label": "y", "prob": "p", **options})
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 420
    return sentence


# Formats.


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", GOOD),
        ("upper.CSV", GOOD),
        ("text.txt", GOOD),
        ("bom.csv", b"\xef\xbb\xbf" + GOOD),
        ("crlf.csv", GOOD.replace(b"\n", b"\r\n")),
        ("no_last_newline.csv", GOOD.rstrip()),
        ("blank_lines.csv", b"\n\n" + GOOD),
        ("blank_lines_crlf.csv", b"\r\n \r\n" + GOOD.replace(b"\n", b"\r\n")),
        ("quoted.csv", b'"p","y"\n"0.5","1"\n"0.25","0"\n'),
        ("semicolons.csv", GOOD.replace(b",", b";")),
        ("bools.csv", b"p,y\n0.5,true\n0.25,false\n"),
        ("decimals.csv", b"p,y\n.5,1.0\n2.5e-1,0.0\n"),
        ("tabs.tsv", GOOD.replace(b",", b"\t")),
        ("lines.jsonl", b'{"p": 0.5, "y": 1}\n{"y": 0, "p": 0.25}\n'),
        ("lines.ndjson", b'{"p": 0.5, "y": true}\n{"y": false, "p": 0.25}\n'),
        ("array.json", b'[{"p": 0.5, "y": 1}, {"p": 0.25, "y": 0}]'),
        ("a [1] *.csv", GOOD),
        ("it's; DROP TABLE.csv", GOOD),
    ],
)
def test_what_can_be_read(way, at, name, content):
    assert sketch(at(name, content), label="y", prob="p") == EXPECTED
    if not name.startswith("bom"):  # a compressed byte order mark is beyond DuckDB
        zipped = at(name + ".gz", gzip.compress(content))
        assert sketch(str(zipped), label="y", prob="p") == EXPECTED


@pytest.mark.parametrize("ending", ["parquet", "pq", "csv.zst", "jsonl.zst"])
def test_what_duckdb_writes(way, tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    form = {"pq": "parquet", "csv.zst": "csv", "jsonl.zst": "json"}.get(ending, ending)
    rows = "(SELECT * FROM (VALUES (0.5::FLOAT, true), (0.25, false)) AS t(p, y))"
    duckdb.connect().execute(f"COPY {rows} TO '{path}' (FORMAT {form})")
    assert sketch(path, label="y", prob="p") == EXPECTED


@pytest.mark.parametrize("kind", ["DECIMAL(9, 4)", "FLOAT", "DOUBLE"])
def test_numbers_of_parquet(way, tmp_path, kind):
    path = tmp_path / "rows.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT (i / 100)::{kind} AS p, (i % 2)::HUGEINT AS y FROM range(101) t(i)) "
        f"TO '{path}'"
    )
    i = np.arange(101)
    p = (i / 100).astype(np.float32 if kind == "FLOAT" else np.float64)
    made = sketch(path, label="y", prob="p", n_cells=100)
    assert made.allclose(Sketch(100).update(i % 2, p))


# DuckDB judges a text file by its first 20 480 rows.


@pytest.mark.parametrize("column", ["p", "y", "w"])
def test_decimals_after_many_whole_numbers_are_not_rounded(way, at, column):
    late = ",".join("0.25" if name == column else "1" for name in "pyw").encode()
    path = at("late.csv", b"p,y,w\n" + b"1,1,1\n" * 30_000 + late + b"\n")
    columns = {name: np.ones(30_001) for name in "pyw"}
    columns[column][-1] = 0.25
    made = sketch(path, label="y", prob="p", weight="w")
    assert made.allclose(Sketch().update(columns["y"], columns["p"], columns["w"]))


def test_late_decimals_of_json_and_of_groups_are_not_rounded(way, at):
    early, late = b'{"p": 1, "y": 1, "g": 1}\n', b'{"p": 0.25, "y": 1, "g": 1.5}\n'
    path = at("late.jsonl", early * 30_000 + late)
    made = sketch(path, label="y", prob="p", by="g")
    assert list(made) == [1, 1.5]
    assert made[1.5] == Sketch().update([1], [0.25])


@pytest.mark.parametrize("line", [b"0.5,1,3", b"0.5", b'"0.5,1'])
def test_late_trouble_is_told_with_its_line(way, at, line):
    path = at("late.csv", b"p,y\n" + b"0.5,1\n" * 30_000 + line + b"\n")
    assert re.search(r"late\.csv: cannot be read as CSV: .*Line: 30002", refusal(path))


@pytest.mark.parametrize("line", ["oops,1", "# note,1", "0x1,1"])
def test_late_text_is_told_with_its_place(way, at, line):
    path = at("late.csv", b"p,y\n" + b"0.5,1\n" * 30_000 + line.encode() + b"\n")
    text = f"got the text {line[:-2]!r} at index 30000: convert it first"
    assert refusal(path).endswith(f"late.csv: prob column 'p' must hold numbers; {text}")


# Several files.


def test_a_glob_reads_each_file_by_its_own_header(way, at, tmp_path):
    at("1.csv", b"p,y\n1,1\n")
    at("2.csv", b"y,p,more\n1,0.25,x\n")
    at("3.csv", b"p,y\n")
    at("deep/4.csv", b"y;p\n0;0.5\n")
    made = sketch(tmp_path / "**" / "*.csv", label="y", prob="p")
    assert made == Sketch().update([1, 1, 0], [1, 0.25, 0.5])
    assert sketch(f"{tmp_path}/?.csv", label="y", prob="p").n == 2


def test_a_file_named_like_a_glob_is_one_file(way, at):
    at("xy.csv", GOOD)
    assert sketch(at("x*.csv", b"p,y\n0.75,1\n"), label="y", prob="p").n == 1


def test_types_of_parquet_files_may_differ(way, tmp_path):
    connection = duckdb.connect()
    connection.execute(f"COPY (SELECT 1 AS p, 1 AS y) TO '{tmp_path}/1.parquet'")
    connection.execute(f"COPY (SELECT true AS y, 0.25 AS p) TO '{tmp_path}/2.parquet'")
    made = sketch(f"{tmp_path}/*.parquet", label="y", prob="p")
    assert made == Sketch().update([1, 1], [1, 0.25])


def test_folders_named_after_groups(way, tmp_path):
    connection = duckdb.connect()
    rows = "SELECT i / 4 AS p, i % 2 AS y, 'v' || (i % 2) AS model FROM range(4) t(i)"
    connection.execute(f"COPY ({rows}) TO '{tmp_path}/out' (FORMAT parquet, PARTITION_BY (model))")
    made = sketch(f"{tmp_path}/out/*/*.parquet", label="y", prob="p", by="model")
    assert made == {
        "v0": Sketch().update([0, 0], [0, 0.5]),
        "v1": Sketch().update([1, 1], [0.25, 0.75]),
    }


def test_groups_add_up_over_files(way, at, tmp_path):
    at("1.csv", b"p,y,g\n0.5,1,a\n0.25,0,b\n")
    at("2.csv", b"p,y,g\n0.75,1,a\n")
    made = sketch(f"{tmp_path}/*.csv", label="y", prob="p", by="g")
    assert made["a"] == Sketch().update([1, 1], [0.5, 0.75])
    assert made["b"].n == 1


def test_classes_in_files(way, at, tmp_path):
    at("1.csv", b"a,b,label\n0.75,0.25,1\n0.5,0.5,0\n")
    at("2.csv", b"a,b,label\n0.25,0.75,1\n")
    made = sketch(f"{tmp_path}/*.csv", label="label", prob=["a", "b"])
    assert made[1] == Sketch(2520).update([1, 0, 1], [0.25, 0.5, 0.75])
    at("3.csv", b"a,b,label\n0.25,0.75,b\n")
    said = refusal(f"{tmp_path}/*.csv", label="label", prob=["a", "b"])
    assert said.endswith("label column 'label' must hold the same type in all files")


def test_where_on_files(way, at):
    path = at("rows.csv", b"p,y,site\n0.5,1,a\n9,1,b\n0.25,0,a\n")
    assert sketch(path, label="y", prob="p", where=nw.col("site") == "a") == EXPECTED
    assert "at least one row left by where" in refusal(path, where=nw.col("site") == "c")
    assert "source cannot be read as asked" in refusal(path, where=nw.col("nope") == "c")
    assert "where must be a narwhals expression" in refusal(path, where="1=1; DROP TABLE t")


@pytest.mark.parametrize("name", ['"; DROP TABLE t; --', "it's", "a b.c", "\\", "é🙂", "p0", "k"])
def test_names_are_data(way, at, name):
    header = '"' + name.replace('"', '""') + '"'
    path = at("names.csv", f"{header},label\n0.5,1\n0.25,0\n".encode())
    assert sketch(path, label="label", prob=name) == EXPECTED


# Rows that cannot be counted.


def test_faults_are_told_with_their_file(way, at, tmp_path):
    at("1.csv", GOOD)
    at("2.csv", b"p,y\n0.5,1\n1.5,0\n,1\nnan,1\n")
    said = refusal(f"{tmp_path}/*.csv")
    assert re.search(r"prob column 'p' must have a value.* 2\.csv \(2 such values\): fill", said)
    assert said.endswith("; other rows are invalid, too")
    with pytest.warns(UserWarning, match=r"^3 rows of 6 left out: 2 with null or nan in 'p', 1 "):
        made = sketch(f"{tmp_path}/*.csv", label="y", prob="p", on_invalid="drop")
    assert made == EXPECTED + Sketch().update([1], [0.5])


def test_percentages_are_told_by_all_files(way, at, tmp_path):
    at("1.csv", b"p,y\n2,1\n3,0\n")
    assert refusal(f"{tmp_path}/*.csv").endswith(
        ": percentages? divide by 100; most rows are like that, too many to leave out"
    )
    at("2.csv", b"p,y\n4999,1\n")
    assert ": only probabilities can be calibrated;" in refusal(f"{tmp_path}/*.csv")


def test_places_are_counted_in_each_file_across_chunks(at, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(files, "_CHUNK_VALUES", 4096)
    at("1.csv", GOOD)
    at("2.csv", b"p,y\n" + b"0.5,1\n" * 5000 + b"1.5,1\n")
    assert "got 1.5 at index 5000 of 2.csv: " in refusal(f"{tmp_path}/*.csv")
    said = refusal(f"{tmp_path}/*.csv", where=nw.col("p") > 0.3)
    assert "at index 5000 of 2.csv, counting those kept by where" in said


def test_chunks_add_up(at, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(files, "_CHUNK_VALUES", 4096)
    rng = np.random.default_rng(0)
    p, y, w = rng.random(10_000), rng.integers(0, 2, 10_000), rng.integers(0, 2, 10_000)
    w[:4096] = 0
    rows = "\n".join(f"{a!r},{b},{c}" for a, b, c in zip(p.tolist(), y, w, strict=True))
    made = sketch(at("rows.csv", b"p,y,w\n" + rows.encode()), label="y", prob="p", weight="w")
    assert made.allclose(Sketch().update(y, p, w))


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "nan", "null", "NULL", "."])
def test_what_is_missing_in_text(way, at, missing):
    path = at("rows.csv", f"p,y\n0.5,1\n{missing},0\n0.25,0\n".encode())
    with pytest.warns(UserWarning, match="1 row of 3 left out: 1 with null or nan in 'p'"):
        made = sketch(path, label="y", prob="p", on_invalid="drop")
    assert made == Sketch().update([1, 0], [0.5, 0.25])


@pytest.mark.parametrize(
    "content", [b"p;y;w\n0,5;1;1,5\n1;0;2\n", b'p,y,w\n"0,5",1,"1,5"\n1,0,2\n']
)
def test_decimal_commas(way, at, content):
    made = sketch(at("rows.csv", content), label="y", prob="p", weight="w")
    assert made.allclose(Sketch().update([1, 0], [0.5, 1.0], [1.5, 2.0]))


def test_columns_that_only_look_renamed(way, at):
    content = b"p,y,p_1\n0.5,1,0.2\n"
    assert sketch(at("rows.csv", content), label="y", prob="p").n == 1


def test_truth_values_are_classes_as_they_are_written(way, at):
    content = b"y,yes,no\nyes,0.75,0.25\nno,0.5,0.5\n"
    made = sketch(at("rows.csv", content), label="y", prob=["yes", "no"])
    assert made["yes"] == Sketch(2520).update([1, 0], [0.75, 0.5])


# Text is text.


def test_words_for_nothing_are_names_of_groups(way, at):
    groups = ["NA", "null", ".", "", "FR", "nan", "NULL", '""']
    rows = "".join(f"0.5,1,{group}\n" for group in groups)
    path = at("rows.csv", f"p,y,country\n{rows}".encode())
    made = sketch(path, label="y", prob="p", by="country")
    assert list(made) == [".", "FR", "NA", "NULL", "nan", "null", None]
    assert made[None].n == 2


def test_words_for_nothing_are_names_of_classes(way, at):
    content = b"label,p_NA,p_EU\nNA,0.75,0.25\nEU,0.5,0.5\n"
    classes = {"NA": "p_NA", "EU": "p_EU"}
    path = at("rows.csv", content)
    made = sketch(path, label="label", prob=classes, on_invalid="drop")
    assert made["NA"] == Sketch(2520).update([1, 0], [0.75, 0.5])
    assert "must have a value" in refusal(
        at("holes.csv", content + b",0.5,0.5\n"), label="label", prob=classes
    )


def test_words_for_nothing_are_names_of_columns(way, at):
    path = at("rows.csv", b"label,NA,.\nNA,0.75,0.25\n.,0.5,0.5\n")
    made = sketch(path, label="label", prob={"NA": "NA", ".": "."})
    assert made["NA"] == Sketch(2520).update([1, 0], [0.75, 0.5])


def test_words_for_nothing_among_numbers_are_missing(way, at):
    path = at("rows.csv", b"p,y,g\n0.5,1,10\n0.5,1,NA\n0.5,1,\n0.5,1,9\n0.5,1,9.0\n")
    made = sketch(path, label="y", prob="p", by="g")
    assert {key: one.n for key, one in made.items()} == {9: 2, 10: 1, None: 2}


def test_codes_with_zeros_in_front_are_text(way, at):
    path = at("rows.csv", b"p,y,g\n0.5,1,007\n0.5,1,7\n0.5,1,010\n")
    assert list(sketch(path, label="y", prob="p", by="g")) == ["007", "010", "7"]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_groups_of_64_bit_numbers_are_told_apart(way, tmp_path, form):
    path = tmp_path / f"rows.{form}"
    kind = {"jsonl": "json"}.get(form, form)
    first = 1_700_000_000_000_000_000
    rows = f"SELECT 0.5 AS p, 1 AS y, {first} + i AS id FROM range(200) t(i)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT {kind})")
    made = sketch(path, label="y", prob="p", by="id")
    assert list(made) == list(range(first, first + 200))


def test_groups_beyond_64_bits_are_told_apart(way, tmp_path):
    path = tmp_path / "rows.parquet"
    rows = "SELECT 0.5 AS p, 1 AS y, unnest([-1, 9223372036854775807, 9223372036854775809]) AS id"
    duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/rows.csv'")
    assert list(sketch(tmp_path / "rows.csv", label="y", prob="p", by="id")) == [
        -1,
        2**63 - 1,
        2**63 + 1,
    ]
    rows = "SELECT 0.5 AS p, 1 AS y, unnest([1, 18446744073709551615])::UBIGINT AS id"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}'")
    assert list(sketch(path, label="y", prob="p", by="id")) == [1, 2**64 - 1]


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
def test_groups_that_are_numbers_in_one_file_and_text_in_another_are_text(way, tmp_path, form):
    kind = {"jsonl": "json"}.get(form, form)
    for name, groups in (("1", "1, 2"), ("2", "'1', 'a'")):
        rows = f"SELECT 0.5 AS p, 1 AS y, unnest([{groups}]) AS g"
        duckdb.connect().execute(f"COPY ({rows}) TO '{tmp_path}/{name}.{form}' (FORMAT {kind})")
    made = sketch(f"{tmp_path}/*.{form}", label="y", prob="p", by="g")
    assert {key: one.n for key, one in made.items()} == {"1": 2, "2": 1, "a": 1}


def test_numbers_and_text_in_groups_of_json_are_text(way, at):
    lines = b'{"p":0.5,"y":1,"g":1}\n{"p":0.5,"y":1,"g":"a"}\n{"p":0.5,"y":1,"g":null}\n'
    assert list(sketch(at("rows.jsonl", lines), label="y", prob="p", by="g")) == ["1", "a", None]


def test_truth_values_and_numbers_in_groups_of_json_are_told_apart(way, at):
    lines = b"".join(b'{"p":0.5,"y":1,"g":%s}\n' % one for one in (b"true", b"1", b"1.0", b"null"))
    made = sketch(at("rows.jsonl", lines), label="y", prob="p", by="g")
    assert {key: one.n for key, one in made.items()} == {"1": 2, "True": 1, None: 1}


def test_where_on_the_column_of_groups(way, at):
    for name, content in (
        ("rows.csv", b"p,y,g\n0.5,1,1\n0.5,1,NA\n0.5,1,3\n"),
        ("rows.jsonl", b'{"p":0.5,"y":1,"g":1}\n{"p":0.5,"y":1,"g":3}\n'),
    ):
        made = sketch(at(name, content), label="y", prob="p", by="g", where=nw.col("g") > 2)
        assert list(made) == [3]


def test_where_on_dates_and_on_columns_with_gaps(way, at):
    content = b"p,y,day,age\n0.5,1,31/12/2023,NA\n0.25,0,30/06/2024,30\n0.75,1,01/07/2024,NA\n"
    path = at("rows.csv", content)
    since = dt.date(2024, 1, 1)
    assert sketch(path, label="y", prob="p", where=nw.col("day") > since).n == 2
    assert sketch(path, label="y", prob="p", where=nw.col("age") > 20).n == 1


# Names of folders.


def written(folder, form, columns="p, y, w"):
    """Write four rows with p, y, w and site into a folder, and name the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rows.{form}"
    rows = "SELECT i / 4 AS p, i % 2 AS y, 1 + i AS w, 'own' AS site FROM range(4) t(i)"
    kind = {"jsonl": "json"}.get(form, form)
    duckdb.connect().execute(f"COPY (SELECT {columns} FROM ({rows})) TO '{path}' (FORMAT {kind})")
    return path


FORMS = ("parquet", "csv", "jsonl")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("folder", ["y=1", "w=5", "p=0.5", "Y=1/site=a"])
def test_columns_of_a_file_win_over_names_of_folders(way, tmp_path, form, folder):
    path = written(tmp_path / folder, form)
    expected = Sketch().update([0, 1, 0, 1], [0, 0.25, 0.5, 0.75], [1, 2, 3, 4])
    assert sketch(path, label="y", prob="p", weight="w").allclose(expected)
    if "site" in folder:
        made = sketch(path, label="y", prob="p", weight="w", by="site")
        assert list(made) == ["a"]
        assert made["a"].allclose(expected)


@pytest.mark.parametrize("form", FORMS)
def test_names_of_folders_are_columns(way, tmp_path, form):
    for day in ("2024-01-01", "2024-01-02"):
        written(tmp_path / f"day={day}" / "model=a%20b" / "w=2" / "id=10", form, "p, y")
    source = f"{tmp_path}/*/*/*/*/rows.{form}"
    days = [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]
    assert list(sketch(source, label="y", prob="p", by="day")) == days
    assert list(sketch(source, label="y", prob="p", by="model")) == ["a b"]
    assert list(sketch(source, label="y", prob="p", by="id")) == [10]
    assert sketch(source, label="y", prob="p", weight="w").weight == 16
    assert sketch(source, label="y", prob="p", where=nw.col("day") == days[0]).n == 4


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_some_files_and_names_of_other_folders_are_refused(way, tmp_path, form):
    written(tmp_path / "site=a", form, "p, y, site")
    written(tmp_path / "site=b", form, "p, y")
    said = refusal(f"{tmp_path}/*/rows.{form}", by="site")
    assert "site=b" in said
    assert "column 'site' must be in all files or in the names of all folders" in said
    assert sketch(f"{tmp_path}/*/rows.{form}", label="y", prob="p").n == 8


# Checksums.


def test_a_wrong_checksum_is_refused(way, at):
    content = b"p,y\n0.125,0\n0.375,1\n"
    stored = gzip.compress(content, compresslevel=0)
    altered = stored.replace(b"0.375", b"0.875")
    assert altered != stored
    said = refusal(at("rows.csv.gz", altered))
    assert "rows.csv.gz: cannot be read as CSV: its checksum is wrong" in said
    lines = gzip.compress(b'{"p":0.5,"y":1}\n', compresslevel=0).replace(b"0.5", b"0.7")
    assert "checksum" in refusal(at("rows.jsonl.gz", lines))
    # Parts that follow each other are one file.
    two = gzip.compress(content) + gzip.compress(b"0.5,1\n")
    assert sketch(at("two.csv.gz", two), label="y", prob="p").n == 3


def test_a_wrong_checksum_of_zstd_is_refused(way, at):
    content = (
        b"(\xb5/\xfd$F\x15\x02\x00t\x03p,y\n0.140891,0\n0.267459519501,1\n0.495185827036098418,1\n"
        b"\x03\x04\x02D\x95`ui\x02\xac\xbf\xc6|"
    )
    assert sketch(at("rows.csv.zst", content), label="y", prob="p").n == 6
    altered = content.replace(b"0.14", b"0.15")
    assert "checksum" in refusal(at("bad.csv.zst", altered))


# Hostile files.


HOSTILE = (
    ("empty.csv", b"", "empty.csv: the file is empty"),
    ("empty.jsonl", b"", "the file is empty"),
    ("empty.csv.gz", gzip.compress(b""), ""),
    ("blank.csv", b"\n\n", "there is no column 'p'"),
    ("header.csv", b"p,y\n", "source must have at least one row; got none"),
    ("bare_header.csv", b"p,y", "source must have at least one row; got none"),
    ("other.csv", b"a,b\n1,2\n", "there is no column 'p'; the columns are 'a', 'b'"),
    ("headless.csv", b"0.5,1\n0.2,0\n", "there is no column 'p'; the columns are '0.5', '1'"),
    ("long_row.csv", b"p,y\n0.5,1\n0.25,0,7\n", "same number of fields?"),
    ("short_row.csv", b"p,y\n0.5,1\n0.25\n", "same number of fields?"),
    ("note.csv", b"a note\np,y\n0.5,1\n", "there is no column 'p'; the columns are 'a note'"),
    ("total.csv", b"p,y\n0.5,1\ntotal\n", "same number of fields?"),
    ("comment.csv", b"p,y\n# a,1\n0.5,1\n", "must hold numbers; got the text '# a'"),
    ("comma.csv", b"p;y\n0,5;1\n0.5;0\n", "got '0,5' at index 0: write a decimal"),
    ("soft_comma.csv", b"p;y\n0.5;0,5\n", "got '0,5' at index 0: write a decimal"),
    ("percent.csv", b"p,y\n80.7%,1\n", "got the percentage '80.7%' at index 0: divide by 100"),
    ("hex.csv", b"p,y\n0x1,1\n0.5,0\n", "prob column 'p' must hold numbers; got the text '0x1'"),
    ("keys.jsonl", b'{"p":0.5,"y":1}\n{"p":0.5,"p":1,"y":1}\n', 'has duplicate key "p"'),
    ("twice.csv", b"p,y,p\n0.5,1,0.2\n", "a name of its own, in whatever case; got 'p' and 'p'"),
    ("case.csv", b"P,y,p\n0.5,1,0.2\n", "got 'P' and 'p': rename one of them"),
    ("comma_bare.csv", b"p,y\n0,5,1\n", "same number of fields?"),
    ("text.csv", b"p,y\n0.5,1\nhigh,0\n", "prob column 'p' must hold numbers; got the text 'h"),
    ("labels.csv", b"p,y\n0.5,won\n", "label column 'y' must hold numbers; got the text 'won'"),
    ("na.csv", b"p,y\n0.5,1\nNA,0\n", "'p' must have a value in every row"),
    ("unwritten.csv", b"p,y\n,1\n,0\n", "'p' must have a value in every row"),
    ("open_quote.csv", b'p,y\n"0.5,1\n0.2,0\n', "open_quote.csv"),
    ("rubbish.csv", bytes(range(256)) * 20, "rubbish.csv: cannot be read as CSV"),
    ("zeros.csv", bytes(1000), ""),
    (
        "utf16.csv",
        GOOD.decode().encode("utf-16"),
        "utf16.csv: the file must be in UTF-8, and is not",
    ),
    ("latin.csv", b"p,y,caf\xe9\n0.5,1,\xe9\n", "latin.csv: the file must be in UTF-8, and is not"),
    ("rubbish.csv.gz", b"rubbish" * 9, "rubbish.csv.gz: cannot be read as CSV: Not a gzipped"),
    ("cut.csv.gz", gzip.compress(GOOD * 999)[:-20], "cut.csv.gz"),
    ("rubbish.csv.zst", b"rubbish" * 9, "rubbish.csv.zst: cannot be read as CSV"),
    ("rubbish.parquet", b"rubbish" * 9, "rubbish.parquet: cannot be read as Parquet"),
    ("rubbish.jsonl", b"rubbish" * 9, "rubbish.jsonl"),
    ("cut.jsonl", b'{"p": 0.5, "y": 1}\n{"p":', "cut.jsonl: cannot be read as JSON lines: Mal"),
    ("mixed.jsonl", b'{"p": 0.5, "y": 1}\n{"p": "x", "y": 1}\n', "'p' must hold numbers"),
    ("table.xlsx", b"PK", "files must be called *.csv"),
    ("nothing", GOOD, "files must be called *.csv"),
)


# Named after their files alone: a zipped content holds the time at which it was made.
@pytest.mark.parametrize(("name", "content", "said"), HOSTILE, ids=[case[0] for case in HOSTILE])
def test_hostile_files_are_refused_in_one_sentence(way, at, name, content, said):
    assert said in refusal(at(name, content))


def test_paths_that_lead_nowhere(tmp_path):
    assert refusal(tmp_path / "none.csv") == f"there is no file {str(tmp_path / 'none.csv')!r}"
    assert refusal(f"{tmp_path}/*.csv") == f"no file matches {f'{tmp_path}/*.csv'!r}"
    assert "; got the folder " in refusal(tmp_path)
    assert "; got the folder '.': give for example '*.parquet'" in refusal(".")
    assert "local files" in refusal("s3://bucket/rows.parquet")


def test_a_damaged_parquet_file(way, tmp_path):
    path = tmp_path / "rows.parquet"
    rows = "SELECT random() AS p, 1 AS y FROM range(10000)"
    duckdb.connect().execute(f"COPY ({rows}) TO '{path}'")
    data = path.read_bytes()
    path.write_bytes(data[:4] + b"\xff" * 60 + data[64:])
    assert "rows.parquet: cannot be read as Parquet" in refusal(path)
    path.write_bytes(data[: len(data) // 2])
    assert "rows.parquet: cannot be read as Parquet" in refusal(path)


def test_without_duckdb(at, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'calibrant\[files\]'"):
        sketch(at("rows.csv", GOOD), label="y", prob="p")


# Progress.


def test_silent_unless_on_a_terminal(way, at, capfd):
    sketch(at("rows.csv", GOOD), label="y", prob="p")
    assert capfd.readouterr() == ("", "")


def test_a_late_quote(way, at):
    path = at("late.csv", b"p,y,g\n" + b"0.5,1,a\n" * 30_000 + b'0.5,1,"a,b"\n')
    assert list(sketch(path, label="y", prob="p", by="g")) == ["a", "a,b"]


def test_two_columns_of_parquet_under_one_name(way, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    column, nested = pa.array([0.5, 0.25]), pa.array([{"p": 1.0}, {"p": 2.0}])
    for first, second in (("p", "p"), ("P", "p")):
        table = pa.Table.from_arrays([column, column, pa.array([1, 0])], [first, second, "y"])
        parquet.write_table(table, tmp_path / "rows.parquet")
        said = refusal(tmp_path / "rows.parquet")
        assert f"in whatever case; got {first!r} and {second!r}: rename one of them" in said
    names = ["p", "p_1", "y", "deep"]
    table = pa.Table.from_arrays([column, column, pa.array([1, 0]), nested], names)
    parquet.write_table(table, tmp_path / "rows.parquet")
    assert sketch(tmp_path / "rows.parquet", label="y", prob="p") == EXPECTED


def test_a_text_file_is_looked_at_once(way, at, asked_of_duckdb):
    header = ",".join(f"x{i}" for i in range(50))
    path = at("wide.csv", f"p,y,{header}\n0.5,1{',7' * 50}\n0.25,0{',8' * 50}\n".encode())
    assert sketch(path, label="y", prob="p") == EXPECTED
    assert sum("sniff_csv" in one for one in asked_of_duckdb) == 1
    # Nothing else makes DuckDB guess the dialect again, which is slow where columns are many.
    assert all("auto_detect=false" in one for one in asked_of_duckdb if "read_csv" in one)
