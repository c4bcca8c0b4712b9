"""cb.report: models in, one page out."""

import json
import re

import numpy as np
import pytest

import calibrant as cb

pytest.importorskip("jinja2")
pytest.importorskip("plotly")

RNG = np.random.default_rng(8)
P = RNG.random(300)
Y = (RNG.random(300) < P).astype(int)
SITE = RNG.choice(["<north>", "south"], 300)
FEW = {"n_resamples": 99}


def results(page):
    """Return the numbers that a page holds."""
    return json.loads(re.search(r'id="results">(.*?)</script>', page)[1])


def test_several_models_are_compared(tmp_path):
    models = {"a": P, "<b>": P**2}
    page = cb.report(Y, models, tmp_path / "x.html", title="Two & more", **FEW)
    assert (tmp_path / "x.html").read_text() == page
    found = results(page)
    assert [one["name"] for one in found["assessments"]] == ["a", "<b>"]
    assert found["comparison"] == cb.compare(Y, models, **FEW).to_dict()
    assert "&lt;b&gt;" in page
    assert "<title>Two &amp; more</title>" in page


def test_one_model_with_groups():
    found = results(cb.report(Y, P, groups=SITE, source="rows", **FEW))
    assert [row["group"] for row in found["groups"]["rows"]] == ["<north>", "south"]
    assert found["comparison"] is None
    assert results(cb.report(Y, {"a": P}, groups=SITE, **FEW))["groups"] == found["groups"]


def test_columns_of_a_frame_by_name():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"y": np.where(Y, "yes", "no"), "a": P, "b": P**2, "site": SITE})
    several = cb.report("y", {"a": "a", "b": "b"}, data=table, **FEW)
    assert results(several) == results(cb.report(Y, {"a": P, "b": P**2}, **FEW))
    one = cb.report("y", "a", data=table, groups=["site"], **FEW)
    assert results(one)["groups"]["by"] == ["site"]


def test_sketches():
    one, two = (cb.Sketch().update(Y, p) for p in (P, P**2))
    assert len(results(cb.report(one, **FEW))["assessments"]) == 1
    found = results(cb.report({"a": one, "b": two}, **FEW))
    assert [model["name"] for model in found["assessments"]] == ["a", "b"]
    assert found["comparison"] is None


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((Y, {}), {}, "y_prob must hold at least one model"),
        ((Y, {"a": P, "b": P}), {"groups": SITE}, "groups must be left out for several models"),
        (("y", "p"), {}, "to name a column give the dataframe as data"),
    ],
)
def test_refusals(arguments, options, sentence):
    with pytest.raises(cb.CalibrantError, match=sentence):
        cb.report(*arguments, **options)


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "x.html"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("calibrant._base.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        cb.report(Y, P, path, **FEW)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
