"""Bad command lines and bad files: exit code 2, one sentence, no traceback."""

import gzip
import re

import pytest

from tests.cli.conftest import table

pytest.importorskip("typer")
pytest.importorskip("duckdb")

GOOD = "p,y,g,w\n0.5,1,a,1\n0.25,0,b,2\n0.75,1,a,1\n"
CLASSES = "label,p_a,p_b,p_c\na,0.5,0.3,0.2\nb,0.1,0.8,0.1\nc,0.2,0.2,0.6\n"
FILES = {
    "good.csv": GOOD,
    "twin.csv": GOOD,
    "other.csv": GOOD.replace("0.5,1", "0.5,0"),
    "longer.csv": GOOD + "0.1,0,b,1\n",
    "classes.csv": CLASSES,
    "unknown_class.csv": CLASSES.replace("\nc,", "\nz,"),
    "sums.csv": CLASSES.replace("0.6", "0.9"),
    "empty.csv": "",
    "header.csv": "p,y\n",
    "percent.csv": "p,y\n10,0\n90,1\n",
    "signs.csv": "p,y\n80.7%,1\n",
    "logits.csv": "p,y\n1.9,1\n-2.5,0\n",
    "missing.csv": "p,y\n0.5,1\n,0\n",
    "text.csv": "p,y\nabc,1\n0.5,0\n",
    "comma.csv": "p;y\n0,5;1\n0.25;0\n",
    "hex.csv": "p,y\n0x1,1\n0.5,0\n",
    "checksum.csv.gz": gzip.compress(GOOD.encode(), compresslevel=0).replace(b"0.75", b"0.85"),
    "twice.jsonl": '{"p":0.5,"y":1}\n{"p":0.5,"p":1,"y":1}\n',
    "ids.csv": "p,y\n" + "".join(f"{i},{i % 2}\n" for i in range(2, 5000)),
    "twice.csv": "p,y,p\n0.5,1,0.2\n0.25,0,0.1\n",
    "yes.csv": "p,y\n0.5,yes\n0.25,no\n",
    "words.csv": "p,y\n0.5,wet\n0.25,dry\n",
    "minus.csv": "p,y\n0.5,-1\n0.25,1\n",
    "three.csv": "p,y\n0.5,0\n0.25,1\n0.1,2\n",
    "soft.csv": "p,y\n0.5,0.4\n0.25,1.5\n0.75,0.2\n",
    "swapped_text.csv": "p,y\nyes,0.2\nno,0.4\n",
    "swapped.csv": "y,p\n" + "".join(f"{i / 10},{i % 2}\n" for i in range(1, 10)),
    "weights.csv": "p,y,w\n0.5,1,-1\n0.25,0,2\n",
    "weightless.csv": "p,y,w\n0.5,1,0\n0.25,0,0\n",
    "dates.csv": "p,y\n0.5,2024-01-01\n0.25,2024-01-02\n",
    "two_probs.csv": "a,b,y\n0.5,0.25,1\n0.1,0.2,0\n",
    "two_labels.csv": "p,a,b\n0.5,0,1\n0.1,1,0\n",
    "nothing_fits.csv": "x,z\n5,a\n6,b\n",
    "ragged.csv": "p,y\n0.5,1\n0.25\n0.1,0,3\n",
    "binary.csv": bytes(range(128, 256)),
    "made.csv": "p,y,p_recalibrated\n0.5,1,0.5\n",
    "bad.parquet": b"PAR1junk",
    "bad.csv.gz": b"\x1f\x8bjunk",
    "cut.csv.gz": gzip.compress(table(3000).encode())[:-3000],
    "bad.jsonl": '{"p":0.5,"y":1}\n{"p":',
    "bad.sketch": "hello",
    "bad.json": "{}",
    "good.dat": GOOD,
    "one_row.csv": "p,y\n0.5,1\n",
    "json.csv": '[{"p":0.5,"y":1}]',
    "gzip.csv": gzip.compress(GOOD.encode()),
    "parquet.csv": b"PAR1junk",
    "columns.json": '{"y":{"0":0,"1":1},"p":{"0":0.5,"1":0.25}}',
    "headless.csv": "0.5,1\n0.25,0\n",
}

BAD = [
    # The command line itself.
    ("--nope", "--nope"),
    ("asess good.csv", "No such command 'asess'. Did you mean 'assess'?"),
    ("assess", "Missing argument 'FILE'"),
    ("assess good.csv --lable y", "No such option"),
    ("assess good.csv --label", "'--label' requires an argument"),
    ("assess good.csv --level high", "'--level'"),
    ("assess good.csv --level 95", "--level must lie between 0 and 1; got 95.0: 0.95 is 95%"),
    ("assess good.csv --bins 0", "--bins must be a whole number of at least 1; got 0"),
    ("assess good.csv --bins 2.5", "'--bins'"),
    ("assess good.csv --resamples 0", "--resamples must be a whole number of at least 39; got 0"),
    ("assess good.csv --seed -1", "--seed must be at least 0; got -1"),
    ("plot good.csv --dpi 3 --out x.png", "--dpi must be from 10 to 2400; got 3"),
    (
        "assess good.csv --on-invalid skip",
        "Invalid value for '--on-invalid': 'skip' is not one of 'raise', 'drop'",
    ),
    ("assess good.csv --format csv", "--format is for standard input"),
    ("assess - --format xls", "--format must be one of 'csv'"),
    ("assess - -", "which can be read only once"),
    ("assess -", "standard input is empty"),
    # Thresholds.
    ("assess good.csv --fail-if high", "--fail-if cannot be parsed: 'high'"),
    (
        "assess good.csv --fail-if beyond",
        "write 'beyond tolerance', 'not within tolerance', or a comparison such as 'smooth_ece.hi",
    ),
    ("assess good.csv --fail-if nope>1", "--fail-if knows no 'nope'; it knows smooth_ece"),
    ("assess good.csv --fail-if ece.mid>1", "ece in --fail-if has no 'mid', only value, low, high"),
    ("assess good.csv --fail-if n.low>1", "n in --fail-if has no 'low', only value"),
    ("assess good.csv --fail-if ece>much", "--fail-if must compare with a number; got 'much'"),
    ("assess good.csv --fail-if ece>nan", "--fail-if must compare with a number; got 'nan'"),
    ("assess good.csv --by g --fail-if slope<1", "--fail-if knows no 'slope'"),
    # Files.
    ("assess absent.csv", "there is no file 'absent.csv'"),
    ("assess absent*.csv", "no file matches 'absent*.csv'"),
    ("assess .", "FILE must be a file or a glob; got the folder '.'"),
    ("assess http://host/x.csv", "download it first"),
    ("assess good.dat", "files must be called *.csv"),
    ("assess empty.csv", "empty.csv: the file is empty"),
    ("assess header.csv", "header.csv has no rows"),
    ("assess binary.csv", "binary.csv: the file must be in UTF-8, and is not: save it so"),
    ("assess ragged.csv", "do all rows have the same number of fields?"),
    ("assess bad.parquet", "bad.parquet: cannot be read as Parquet"),
    ("assess bad.csv.gz", "bad.csv.gz: cannot be read as CSV"),
    ("assess cut.csv.gz", "cut.csv.gz: cannot be read as CSV"),
    ("assess checksum.csv.gz", "cannot be read as CSV: its checksum is wrong"),
    ("sketch checksum.csv.gz --out x.sketch", "cannot be read as CSV: its checksum is wrong"),
    ("assess twice.jsonl", 'has duplicate key "p"'),
    ("sketch twice.jsonl --out x.sketch", 'has duplicate key "p"'),
    ("assess bad.jsonl", "bad.jsonl: cannot be read as JSON lines"),
    ("assess bad.sketch", "bad.sketch: not a sketch"),
    ("assess bad.sketch good.csv", "sketches and tables cannot be read together"),
    ("assess bad.sketch --label y", "a sketch has no columns: leave out --label"),
    ("assess good.csv ./good.csv", "each file must be given once; 'good.csv' is 'good.csv' again"),
    ("assess good.csv go*.csv", "each file must be given once; 'good.csv' is 'good.csv' again"),
    ("compare good.csv good.csv", "each file must be given once"),
    ("sketch good.csv good.csv --out x.sketch", "each file must be given once"),
    ("assess json.csv", "json.csv: the file holds JSON, not CSV: rename it to *.json"),
    ("assess gzip.csv", "gzip.csv: the file holds gzip, not CSV: rename it to *.csv.gz"),
    ("assess parquet.csv", "the file holds Parquet, not CSV: rename it to *.parquet"),
    ("assess columns.json --label y --prob p", "one object per column: write it anew, in pandas"),
    # Columns.
    (
        "assess headless.csv --prob p",
        "the columns are '0.5', '1': is the row of their names missing",
    ),
    ("assess good.csv --label z", "there is no column 'z'; the columns are 'p', 'y', 'g', 'w'"),
    ("assess good.csv --prob z", "there is no column 'z'"),
    ("assess good.csv --by z", "there is no column 'z'"),
    ("assess good.csv --prob z*", "no column matches --prob 'z*'"),
    ("assess good.csv --prob p --prob p", "--prob must name each column once"),
    ("assess two_probs.csv", "'a', 'b': name one with --prob, or all, as classes, with one --cl"),
    ("assess classes.csv", "name one with --prob, or all, as classes, with --classes 'p_*'"),
    ("assess two_labels.csv", "outcomes may be in 'a', 'b': name one with --label"),
    ("assess nothing_fits.csv", "no column looks like probabilities: name one with --prob"),
    (
        "assess classes.csv --classes a=p_a --classes p_b",
        "--classes must be CLASS=COLUMN for every",
    ),
    ("assess good.csv --label y --prob y", "--prob must not be the column of --label; got 'y'"),
    ("assess good.csv --prob p --label y --by y", "--by must not be the column of --label"),
    ("assess good.csv --prob p --label y --by g --by y", "--by must not be the column of --label"),
    ("assess good.csv --prob p --label y --weight y", "--weight must not be the column of --label"),
    ("assess good.csv --prob p --label y --clusters y", "--clusters must not be the column of"),
    (
        "assess classes.csv --label p_a --classes p_*",
        "--classes must not be the column of --label; got 'p_a'",
    ),
    ("sketch good.csv --label y --prob y --out x.sketch", "--prob must not be the column of --la"),
    ("recalibrate good.csv --label y --prob y", "--prob must not be the column of --label"),
    ("assess classes.csv --classes p_a", "--classes must name a column for each class; got 'p_a'"),
    ("assess classes.csv --classes p_* --prob p_a", "the classes of one model: leave out one of"),
    ("assess good.csv --percent --prob q", "there is no column 'q'"),
    (
        "recalibrate two_probs.csv --prob a --prob b",
        "recalibrate takes one --prob; --classes names",
    ),
    ("sketch two_probs.csv --prob a --prob b --out x.sketch", "in place of the group, class or mo"),
    ("sketch good.csv --by y --by p --out {}.sketch", "sketch takes one --by"),
    (
        "sketch two_probs.csv --prob a --prob b --label y --by a --out {}.sketch",
        "--by takes one --prob; got",
    ),
    # Values.
    (
        "assess percent.csv",
        "got 10.0 in row 1 of percent.csv (2 such values): percentages? give --percent; most rows",
    ),
    (
        "assess percent.csv --on-invalid drop",
        "give --percent; most rows are like that, too many to leave out",
    ),
    ("assess hex.csv", "prob column 'p' must hold numbers; got the text '0x1' in row 1"),
    ("sketch hex.csv --out x.sketch", "'p' must hold numbers; got the text '0x1' in row 1"),
    ("assess ids.csv", "(4,998 such values): only probabilities can be calibrated; most rows"),
    ("sketch ids.csv --out x.sketch", "calibrated; most rows are like that, too many to leave out"),
    ("assess signs.csv", "got the percentage '80.7%' in row 1: give --percent"),
    ("assess logits.csv", "got -2.5 in row 2 of logits.csv (2 such values): logits or scores?"),
    ("assess missing.csv", "'p' must have a value in every row; got null or nan in row 2 of"),
    ("assess text.csv", "prob column 'p' must hold numbers; got the text 'abc'"),
    ("assess comma.csv", "got '0,5' in row 1: write a decimal point"),
    ("assess twice.csv", "each column must have a name of its own, in whatever case"),
    ("assess words.csv", "labels 'dry' and 'wet': name the positive one with --pos-label"),
    ("assess yes.csv --pos-label oui", "labels in label column 'y' ('no', 'yes'); got 'oui'"),
    (
        "assess classes.csv --prob p_a",
        "got 3 labels such as 'c' in row 3: name the columns of all classes with --classes",
    ),
    (
        "assess classes.csv --prob p_a --pos-label a",
        "got 3 ('a', 'b', 'c'): name the columns of all classes with --classes",
    ),
    ("assess words.csv --pos-label snow", "('dry', 'wet'); got 'snow'"),
    ("assess minus.csv", "got the labels -1 and 1"),
    ("assess three.csv", "got 3 labels such as 2 in row 3: name the columns of all classes with"),
    ("assess soft.csv", "label column 'y' must lie in [0, 1]; got 1.5 in row 2"),
    ("assess dates.csv", "label column 'y' must hold numbers; got Date"),
    ("assess swapped.csv", "look swapped"),
    ("assess swapped_text.csv", "in row 1: convert it first, unless label and prob are swapped"),
    ("assess weights.csv --weight w", "weight column 'w' must be finite and not negative; got -1"),
    ("assess weightless.csv --weight w", "weight column 'w' must not be zero everywhere"),
    (
        "assess good.csv three.csv words.csv",
        "label column 'y' must hold the same type in all files",
    ),
    (
        "assess good.csv --multiclass confidence",
        "--multiclass needs one column of probabilities per class; got 'confidence' and one column",
    ),
    (
        "assess classes.csv --classes p_* --multiclass z",
        "--multiclass must be a class label ('a', 'b', 'c') or a reduction such as 'confidence'",
    ),
    (
        "assess classes.csv --classes p_* --multiclass classwise",
        "--multiclass must select one binary problem here; got 'classwise'",
    ),
    (
        "assess unknown_class.csv --classes p_*",
        "'label' must hold the class labels 'a', 'b', 'c'; got 'z' in row 3",
    ),
    (
        "assess sums.csv --classes p_*",
        "the columns of classes must have rows that sum to 1; got a sum of 1.3 in row 3: normalize",
    ),
    # Other commands.
    ("sketch good.csv", "Missing option '--out'"),
    ("sketch good.csv --out good.txt", "--out must end in .sketch; got 'good.txt'"),
    (
        "sketch good.csv --out no/such.sketch",
        "--out must be in a folder that exists; there is no no",
    ),
    ("sketch good.csv --by g --out all.sketch", "--out must have {} in place of the group"),
    ("sketch good.csv --out x{}.sketch", "--out must have no {}: there is one sketch"),
    ("sketch good.csv --cells 0 --out x.sketch", "--cells must be a whole number of at least 1"),
    (
        "sketch words.csv --label y --prob p --out x.sketch",
        "got the text 'wet' in row 1: name the positive outcome with --pos-label",
    ),
    (
        "sketch words.csv --pos-label snow --label y --out x.sketch",
        "--pos-label must be one of the",
    ),
    ("sketch bad.sketch --out x.sketch", "sketches are added up by merge"),
    ("sketch good.csv --json --out -", "would both be written to standard output"),
    ("merge good.csv --out x.sketch", "good.csv: the file is not called *.sketch"),
    ("merge bad.sketch --out x.sketch", "bad.sketch: not a sketch"),
    ("plot good.csv --out x.gif", "--out must end in .png, .svg, .pdf; got 'x.gif'"),
    ("plot good.csv --kind pie --out x.png", "--kind must be one of reliability"),
    ("plot two_probs.csv --kind assessment --out x.png", "--kind assessment takes one --prob"),
    ("plot two_probs.csv --prob a --prob b --by a --out x.png", "--by takes one --prob"),
    ("plot good.csv --by g --kind bins --out x.png", "--by goes with --kind reliability"),
    ("report good.csv --out x.pdf", "--out must end in .html"),
    ("report two_probs.csv --prob a --prob b --by a --out x.html", "--by takes one --prob"),
    ("compare good.csv --prob p", "there must be two models to compare"),
    ("compare good.csv other.csv", "in row 1 good has 1 and other has 0"),
    ("compare good.csv longer.csv", "good has 3 and longer has 4"),
    ("compare missing.csv good.csv", "got null or nan in row 2 of missing.csv: fill them"),
    ("compare good.csv twin.csv --measure mce", "--measure must be one of smooth_ece"),
    ("recalibrate good.csv --prob p --folds 9", "--folds"),
    ("recalibrate good.csv --prob p --method magic", "--method must be one of 'auto'"),
    ("recalibrate good.csv --prob p --score auc", "--score must be one of 'brier', 'log'"),
    ("recalibrate good.csv --using bad.json --prob p", "--using needs --out"),
    (
        "recalibrate good.csv --using bad.json --prob p --label y --weight w --out x.csv",
        "--using fits nothing: leave out --label, --weight",
    ),
    ("recalibrate one_row.csv", "must hold at least two rows that carry weight to recalibrate; g"),
    ("recalibrate good.csv --using bad.json --out x.csv", "--using needs --prob"),
    ("recalibrate good.csv --using bad.json --prob p --out x.csv", "bad.json: not a calibrator"),
    ("recalibrate good.csv --using no.json --prob p --out x.csv", "no.json: No such file"),
    ("recalibrate good.csv --prob p --out x.txt", "--out must end in .csv, .parquet"),
]


@pytest.mark.parametrize(("line", "words"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_gets_one_sentence(run, write, tmp_path, line, words):
    for name, content in FILES.items():
        if re.search(rf"(?<!\w){re.escape(name)}", line):
            write(name, content)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run(*line.split())
    assert code == 2
    assert out == ""
    # What columns were taken is said before, in a line of its own.
    *guesses, sentence = err.splitlines()
    assert all(guess.startswith("calibrant: taking --") for guess in guesses)
    assert sentence.startswith("calibrant: ")
    assert words in sentence
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert len(sentence) < 300
    # Nothing is advised that the command does not know.
    assert "--on-invalid" not in sentence or not line.startswith("compare")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_there_are_many_of_them():
    assert len(BAD) >= 40
