"""One page, whole: escaped, small, the same every time, and asking for nothing."""

import base64
import hashlib
import json
import re
import sys
import zlib
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from calibrant import MissingDependencyError, assess, by_group, compare, plot
from calibrant.datasets import load_rain
from calibrant.reporting.html_page import embedded, packed_library

pytest.importorskip("jinja2")
pytest.importorskip("plotly")

from calibrant.reporting import page, write_page

HOSTILE = "</script><script>alert('1')</script>&\N{LINE SEPARATOR}"


class Reader(HTMLParser):
    """Notes elements as a browser would see them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.scripts, self.elements = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append([dict(attrs), ""])

    def handle_data(self, data):
        if self.cdata_elem == "script":
            self.scripts[-1][1] += data


@pytest.fixture(scope="module")
def text(found, sketched):
    y, p = load_rain()
    groups = by_group(y, p, [HOSTILE, "b"] * 173 + ["b"], n_resamples=39)
    return page({HOSTILE: found, "b": sketched}, title=HOSTILE, groups=groups)


@pytest.fixture(scope="module")
def seen(text):
    return Reader(text)


def script(seen, name):
    return next(content for attributes, content in seen.scripts if attributes.get("id") == name)


def test_text_from_data_never_becomes_an_element(text, seen):
    assert len(seen.scripts) == 5
    assert "<script>alert" not in text
    assert "\N{LINE SEPARATOR}" not in script(seen, "results")


def test_the_policy_names_exactly_the_scripts_that_run(seen):
    policy = next(a["content"] for tag, a in seen.elements if "http-equiv" in a)
    running = [content for attributes, content in seen.scripts if "type" not in attributes]
    running.append(zlib.decompress(base64.b64decode(script(seen, "library"))).decode())
    hashes = {base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in running}
    assert set(re.findall(r"'sha256-([^']+)'", unescape(policy))) == hashes
    assert policy.startswith("default-src 'none'; ")


def test_nothing_is_asked_of_the_network(seen):
    for tag, attributes in seen.elements:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert not any(name.startswith("on") for _, a in seen.elements for name in a)


def test_results_are_those_of_the_assessments(seen, found):
    results = json.loads(script(seen, "results"))
    first = results["assessments"][0]
    assert first["name"] == results["title"] == HOSTILE
    assert first["estimates"] == found.to_dict()["estimates"]
    assert first["bins"] == found.to_dict()["bins"]
    assert [row["group"] for row in results["groups"]["rows"]] == [HOSTILE, "b"]


def test_small_and_the_same_every_time(text, found):
    assert len(text.encode()) < 3e6
    assert page(found) == page(found)
    assert repr(text) == f"<page of {len(text)} characters>"


def test_it_says_what_it_is_about(found):
    about = {"File": HOSTILE, "Outcomes": "rain", "Weights": ""}
    named, plain, silent = (Reader(page(found, source=one)) for one in (about, "rain.csv", ""))
    assert json.loads(script(named, "results"))["source"] == {"File": HOSTILE, "Outcomes": "rain"}
    assert json.loads(script(plain, "results"))["source"] == {"Data": "rain.csv"}
    assert len(named.scripts) == 5
    shown = [("dl", {"class": "source"}) in one.elements for one in (named, plain, silent)]
    assert shown == [True, True, False]
    text = found.to_html(source={"File": "rain.csv"})
    assert "<dt>File</dt> <dd><bdi>rain.csv</bdi></dd>" in text


def test_differences_between_models(found):
    rng = np.random.default_rng(0)
    p = rng.random(300)
    compared = compare(rng.random(300) < p, {HOSTILE: p**3, "b": p}, n_resamples=50)
    text = page({HOSTILE: found, "b": found}, comparison=compared)
    seen = Reader(text)
    assert json.loads(script(seen, "results"))["comparison"] == compared.to_dict()
    assert f'<td class="better"><bdi>{compared.pairs[0].better}</bdi></td>' in text
    assert f'<data value="{compared.pairs[0].bias_corrected}">' in text
    assert 'id="differences-title"' not in page(found)


def test_headings_and_tables_are_made_for_readers_of_all_kinds(seen):
    levels = [int(tag[1]) for tag, _ in seen.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all("scope" in attributes for tag, attributes in seen.elements if tag == "th")
    names = {attributes["id"] for _, attributes in seen.elements if "id" in attributes}
    named = [
        a[k] for _, a in seen.elements for k in ("aria-labelledby", "aria-describedby") if k in a
    ]
    assert set(named) <= names


def test_odd_assessments_have_pages_too(odd):
    for one in odd.values():
        assert "<h2>" in page(one)
    assert page(odd).count('class="verdict') == len(odd)


def test_classes():
    prob = np.random.default_rng(0).dirichlet([1, 1, 1], 90)
    labels = [HOSTILE, "b", "c"]
    found = assess(np.array(labels)[np.arange(90) % 3], prob, labels=labels, n_resamples=39)
    seen = Reader(page(found))
    assert [
        row["label"] for row in json.loads(script(seen, "results"))["assessments"][0]["classes"]
    ] == labels
    assert len(seen.scripts) == 5
    assert ("button", {"type": "button", "data-file": "classes.csv"}) in seen.elements


def figures_of(html):
    return json.loads(zlib.decompress(base64.b64decode(script(Reader(html), "figures"))))


def is_curve(trace):
    """Tell whether a trace is the curve itself."""
    return trace.get("meta", {}).get("curve")


def windows(html):
    """Return the scores that each diagram of a page shows at first, with a little at either end."""
    return {
        key: (tuple(figure["layout"]["xaxis"]["range"]), tuple(figure["layout"]["yaxis"]["range"]))
        for key, figure in figures_of(html).items()
        if key in ("smooth", "binned", "isotonic")
    }


def scores(kind):
    rng = np.random.default_rng(4)
    p = {
        "part": rng.uniform(0.2, 0.55, 20_000),
        "high": rng.uniform(0.97, 1, 2000),
        "rare": rng.uniform(0, 0.01, 3000),
        "all": rng.random(500),
        "one": np.full(300, 0.3),
        "outlier": np.r_[rng.uniform(0.2, 0.4, 5000), 0.93],
        "few": rng.choice([0.2, 0.25, 0.3], 2000),
    }[kind]
    return (rng.random(len(p)) < p).astype(float), p


@pytest.mark.parametrize("kind", ["part", "high", "rare", "all", "one", "outlier", "few"])
def test_a_page_shows_the_same_window_as_a_picture(kind):
    y, p = scores(kind)
    found = assess(y, p, n_resamples=50)
    shown = windows(found.to_html())
    assert len(shown) == 3
    for method, (across, up) in shown.items():
        low, high = plot.reliability(y, p, method=method, n_resamples=50, note=False).get_xlim()
        room = 0.02 * (high - low)
        assert across == up == pytest.approx((low - room, high + room), abs=1e-12)
    overview = plot.assessment(found).child_axes[0].get_xlim()
    room = 0.02 * np.ptp(overview)
    assert shown["smooth"][0] == pytest.approx((overview[0] - room, overview[1] + room), abs=1e-12)
    # All scores are in it.
    assert shown["smooth"][0][0] <= p.min() <= p.max() <= shown["smooth"][0][1]


def test_a_curve_ends_within_a_bandwidth_of_the_scores():
    y, p = scores("part")
    found = assess(y, p, n_resamples=50)
    width = found.curve("smooth").bandwidth
    limits = (p.min() - width - 1e-9, p.max() + width + 1e-9)
    (ribbon,) = [
        one
        for one in plot.assessment(found).child_axes[0].collections
        if isinstance(one, LineCollection)
    ]
    drawn = np.concatenate(ribbon.get_segments())[:, 0]
    (line,) = [one for one in figures_of(found.to_html())["smooth"]["data"] if is_curve(one)]
    shown = [x for x, y in zip(line["x"], line["y"], strict=True) if y is not None]
    for x in (drawn, shown):
        assert limits[0] <= min(x) < p.min()
        assert p.max() < max(x) <= limits[1]


def test_scores_that_keep_to_a_part_are_shown_large():
    y, p = scores("part")
    shown = windows(assess(y, p, n_resamples=50).to_html())["smooth"][0]
    assert shown == pytest.approx((0.09, 0.61))


def words_of(html):
    """Return what a reader sees of a page, the section on single classes left out."""
    shown = re.sub(r"<(script|style)\b.*?</\1>", "", html, flags=re.DOTALL)
    before, _, after = shown.partition('id="classes-title"')
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", before + after.partition("</section>")[2]))


def test_one_word_for_each_quantity():
    rng = np.random.default_rng(0)
    prob = rng.dirichlet([1, 1, 1], 400)
    y = np.array([rng.choice(3, p=row) for row in prob])
    groups = by_group(y, prob, np.arange(400) % 2, n_resamples=39)
    several = page(assess(y, prob, n_resamples=39), groups=groups)
    single = page(assess(y == 0, prob[:, 0], n_resamples=39))
    shown = words_of(several)
    for word in ("Accuracy", "Mean confidence", "mean confidence"):
        assert shown.count(word) >= 2
        assert word not in words_of(single)
    for word in ("revalence", "ean prediction", "mean outcome"):
        assert word not in shown
        assert word in words_of(single)
    both = words_of(page({"a": assess(y, prob, n_resamples=39), "b": assess(y == 0, prob[:, 0])}))
    assert "Accuracy or prevalence" in both


def test_names_that_are_no_text(found, tmp_path):
    write_page(tmp_path / "page.html", {"\udcff": found, "b": found}, title="\ud800")
    assert "<title>?</title>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_written_whole(found, tmp_path):
    path = tmp_path / "report.html"
    assert found.to_html(path, title="T") == path.read_text(encoding="utf-8")
    write_page(tmp_path / "other.html", found, title="T")
    assert (tmp_path / "other.html").read_bytes() == path.read_bytes()
    assert [one.name for one in sorted(tmp_path.iterdir())] == ["other.html", "report.html"]


def test_json_that_cannot_end_its_element():
    assert embedded({"a": "</script>&\N{LINE SEPARATOR}"}) == (
        '{"a":"\\u003c/script\\u003e\\u0026\\u2028"}'
    )


@pytest.mark.parametrize("package", ["plotly.offline", "jinja2"])
def test_what_to_install(found, package, monkeypatch):
    packed_library.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    name = package.partition(".")[0]
    with pytest.raises(MissingDependencyError, match=rf"needs {name}: pip install 'calibrant\[rep"):
        found.to_html()


def test_decisions(found):
    y, p = load_rain()
    regret = assess(y, p, n_resamples=50, threshold=0.25)
    shown = page({"with": regret, "without": found})
    assert "Acting from a probability of 0.25 on, recalibration would save 0.017" in shown
    assert shown.count("Acting from a probability") == 1
    assert 'data-view="murphy"' in shown
    assert 'data-view="decision"' in shown
    assert "Acting from a probability" not in page(found)
