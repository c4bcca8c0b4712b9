"""The report in a real browser: it draws, answers, stays within itself, and shows its numbers."""

import csv
import io
import json

import numpy as np
import pytest

from calibrant import assess
from calibrant.assessment.groups import by_group
from calibrant.datasets import load_flares, load_rain

pytest.importorskip("jinja2")
pytest.importorskip("plotly")

from calibrant.report import write_page

HOSTILE = "<script>document.title = 'taken'</script>"
ODD = '=A1 & "100%" %{x} </script><img src=x onerror="document.title = \'taken\'">'
VIEWS = ("smooth", "binned", "isotonic", "cumulative")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return where a page on two models of hostile names lies, and one on a single model."""
    folder = tmp_path_factory.mktemp("report")
    names = {HOSTILE: "DAFFS", ODD: "NOAA"}
    found = {name: assess(*load_flares(who), n_resamples=50) for name, who in names.items()}
    write_page(folder / "several.html", found, title=HOSTILE)
    y, p = load_rain()
    labels = np.array([HOSTILE, "--series-2", None], dtype=object)[np.arange(len(y)) % 3]
    groups = by_group(y, p, labels, n_resamples=50)
    found = assess(y, p, n_resamples=50)
    write_page(folder / "single.html", found, title="Rain", groups=groups)
    labels = np.array(["The northern region, including all of its islands", "The south"] * 200)
    groups = by_group(y, p, labels[: len(y)], n_resamples=50)
    write_page(folder / "long.html", found, source={"File": HOSTILE}, groups=groups)
    return folder


@pytest.fixture(scope="module")
def open_page(browser, files):
    """Return a function that opens a page and listens to what it says and asks for."""
    contexts = []

    def open_page(name, *, setup=""):
        context = browser.new_context(viewport={"width": 1440, "height": 1000})
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.add_init_script(setup)
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
        page.on("request", lambda one: page.complaints.append(one.url) if remote(one.url) else None)
        page.goto((files / name).as_uri())
        page.wait_for_selector("body.drawn, #trouble:not([hidden])")
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def several_opened(open_page):
    return open_page("several.html")


@pytest.fixture(scope="module")
def single_opened(open_page):
    return open_page("single.html")


@pytest.fixture
def several(several_opened):
    yield several_opened
    assert several_opened.complaints == []


@pytest.fixture
def single(single_opened):
    yield single_opened
    assert single_opened.complaints == []


def remote(url):
    return not url.startswith(("file:", "blob:", "data:"))


def results(page):
    return json.loads(page.locator("#results").text_content())


def choose(page, view):
    page.locator(f"input[name=view][value={view}]").check(force=True)
    page.wait_for_selector(f"#view-{view} .main-svg")
    return f"#view-{view} .diagram"


def axis_range(page, drawing, axis="xaxis"):
    return page.evaluate("([d, a]) => document.querySelector(d).layout[a].range", [drawing, axis])


def pixel(page, drawing, x, y):
    """Return where a point of a diagram is on the screen."""
    return page.evaluate(
        """([drawing, x, y]) => {
            const element = document.querySelector(drawing);
            const { xaxis, yaxis } = element._fullLayout;
            const box = element.getBoundingClientRect();
            return [box.x + xaxis._offset + xaxis.d2p(x), box.y + yaxis._offset + yaxis.d2p(y)];
        }""",
        [drawing, x, y],
    )


def test_every_view_draws_the_numbers_of_the_page(several):
    page = several
    for view in VIEWS:
        drawing = choose(page, view)
        assert page.locator(".view:visible").count() == 1
        told = page.evaluate(
            "d => document.querySelector(d).data.filter(t => t.meta?.told).map(t => [t.x, t.y])",
            drawing,
        )
        for (x, y), found in zip(told, results(page)["assessments"], strict=True):
            if view == "cumulative":
                known = found["cumulative"]["fraction"], found["cumulative"]["deviation"]
            else:
                curve = next(one for one in found["curves"] if one["method"] == view)
                known = curve["x"], curve["y"]
            assert x == known[0]
            assert all(a == b or a is None for a, b in zip(y, known[1], strict=True))
            assert sum(a is not None for a in y) > 5


def test_hovering_tells_score_outcome_interval_and_count(single):
    page = single
    drawing = choose(page, "binned")
    found = results(page)["assessments"][0]
    curve = next(one for one in found["curves"] if one["method"] == "binned")
    filled = [n for n in found["bins"]["n"] if n]
    for k in (2, 7):
        page.mouse.move(*pixel(page, drawing, curve["x"][k], curve["y"][k]))
        told = page.locator(f"{drawing} .hovertext", has_text=f"score {curve['x'][k]:.4g}")
        told.wait_for()
        text = told.text_content()
        assert f"observed {curve['y'][k]:.4g}" in text
        assert f"{filled[k]} rows in " in text
        if curve["lower"][k] is not None:
            assert f"interval {curve['lower'][k]:.4g} to {curve['upper'][k]:.4g}" in text


def test_the_keyboard_reaches_views_and_points(several):
    page = several
    page.locator("input[name=view][value=smooth]").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#view-binned .main-svg")
    page.locator("#view-binned .diagram").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#told").text_content()
    curve = results(page)["assessments"][0]["curves"][1]
    assert f"score {curve['x'][0]:.4g}, observed {curve['y'][0]:.4g}" in first
    assert first.startswith(HOSTILE)
    page.keyboard.press("ArrowDown")
    assert page.locator("#told").text_content().startswith(ODD)
    page.keyboard.press("End")
    assert page.locator("#told").text_content().endswith("to 1")
    assert page.locator("#view-binned .hovertext").count() == 1


def test_zoom_by_dragging_and_by_buttons(single):
    page = single
    drawing = choose(page, "smooth")
    whole = axis_range(page, drawing)
    page.mouse.move(*pixel(page, drawing, 0.2, 0.2))
    page.mouse.down()
    page.mouse.move(*pixel(page, drawing, 0.6, 0.7), steps=4)
    page.mouse.up()
    page.wait_for_function(
        "w => document.querySelector(w).layout.xaxis.range[0] > 0.1", arg=drawing
    )
    assert axis_range(page, drawing) == pytest.approx([0.2, 0.6], abs=0.01)
    page.get_by_role("button", name="Light").or_(page.get_by_role("button", name="Dark")).click()
    assert axis_range(page, drawing) == pytest.approx([0.2, 0.6], abs=0.01)
    page.get_by_role("button", name="Reset").click()
    assert axis_range(page, drawing) == pytest.approx(whole)
    page.get_by_role("button", name="Zoom in").click()
    assert np.ptp(axis_range(page, drawing)) == pytest.approx(0.6 * np.ptp(whole))


def test_models_can_be_left_out(several):
    page = several
    drawing = choose(page, "smooth")
    models = (
        "d => document.querySelector(d).data.filter(t => t.visible).map(t => t.meta?.model ?? -1)"
    )
    assert set(page.evaluate(models, drawing)) == {-1, 0, 1}
    page.get_by_role("checkbox").first.uncheck()
    assert set(page.evaluate(models, drawing)) == {-1, 1}
    page.get_by_role("checkbox").first.check()


def test_names_from_data_stay_text(several):
    page = several
    assert page.title() == HOSTILE
    assert page.get_by_role("heading", level=1).text_content() == HOSTILE
    names = page.locator(".verdict .name").all_text_contents()
    assert [name.strip() for name in names] == [HOSTILE, ODD]
    assert page.locator("main img, main script").count() == 0


def test_tables_show_the_numbers_of_the_page(several):
    page = several
    for k, found in enumerate(results(page)["assessments"]):
        for one in found["estimates"]:
            row = page.locator(f"[data-measure={one['measure']}] td")
            shown = row.nth(2 * k).locator("data")
            values = shown.evaluate_all("all => all.map(d => Number(d.value))")
            assert values == [one["value"], one["low"], one["high"]]
            texts = [float(text) for text in shown.all_text_contents()]
            assert texts == pytest.approx(values, abs=0.006)
        gaps = page.locator("table.bins").nth(k).locator("td.gap data")
        filled = [gap for gap in found["bins"]["gap"] if gap is not None]
        assert gaps.evaluate_all("all => all.map(d => Number(d.value))") == filled


def test_groups(single):
    page = single
    rows = results(page)["groups"]["rows"]
    labels = page.locator("table.groups tbody th bdi").all_text_contents()
    assert labels == ["--series-2", HOSTILE, "(none)"]
    shown = page.locator("table.groups tbody tr td:nth-of-type(4) data")
    values = shown.evaluate_all("all => all.map(d => Number(d.value))")
    assert values == [row[name] for row in rows for name in ("smooth_ece", "low", "high")]
    ticks = page.locator("figure.groups .ytick text").all_text_contents()
    assert ticks == ["--series-2", HOSTILE[:21] + "…", "(none)"]
    page.locator("figure.groups .diagram").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#told").text_content().startswith(f"{HOSTILE}, smECE ")


def test_long_names_of_groups_push_nothing_out_of_sight(open_page):
    page = open_page("long.html")
    page.set_viewport_size({"width": 900, "height": 800})
    table = page.locator("table.groups")
    assert table.locator("th .remarks").first.text_content().startswith("miscalibrated")
    inner, outer = table.evaluate("t => [t.offsetWidth, t.parentElement.clientWidth]")
    assert inner <= outer
    assert page.locator(".source").text_content() == f"File {HOSTILE}"


def test_downloads_are_the_numbers_of_the_page(several):
    page = several
    known = results(page)

    def saved(button):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=button, exact=True).click()
        return waiting.value.path().read_text(encoding="utf-8")

    assert json.loads(saved("All results, JSON")) == known
    rows = list(csv.DictReader(io.StringIO(saved("Measures, CSV"), newline="")))
    estimates = [one for found in known["assessments"] for one in found["estimates"]]
    assert [float(row["low"]) for row in rows] == [one["low"] for one in estimates]
    # A name that a spreadsheet would compute is kept from it.
    assert {row["model"] for row in rows} == {HOSTILE, f"'{ODD}"}
    rows = list(csv.DictReader(io.StringIO(saved("Bins, CSV"), newline="")))
    assert [int(row["n"]) for row in rows[:15]] == known["assessments"][0]["bins"]["n"]
    rows = list(csv.DictReader(io.StringIO(saved("Curves, CSV"), newline="")))
    assert float(rows[0]["y"]) == known["assessments"][0]["curves"][0]["y"][0]
    assert "<svg" in saved("Save picture")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1440, "light")])
def test_narrow_and_wide_light_and_dark(several, width, scheme):
    page = several
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    for view in VIEWS:
        drawing = choose(page, view)
        page.wait_for_function(
            "([d, w]) => document.querySelector(d).layout.width <= w", arg=[drawing, width]
        )
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator(drawing).bounding_box()["width"] >= 0.8 * min(width, 600)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in paper[4:-1].split(","))
    assert (brightness < 200) == (scheme == "dark")
    page.wait_for_function(
        "c => document.querySelector('#view-cumulative .diagram').layout.paper_bgcolor === c",
        arg=paper,
    )


def test_on_paper_everything_is_open_and_light(several):
    page = several
    page.emulate_media(media="print", color_scheme="dark")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".diagram .main-svg:visible").count() >= len(VIEWS)
    assert page.locator("table.bins:visible").count() == 2
    assert page.locator("button:visible").count() == 0
    assert (
        page.evaluate("document.querySelector('.diagram').layout.font.color") == "rgb(29, 29, 27)"
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="light")
    assert page.locator("table.bins:visible").count() == 0


def test_the_page_may_ask_nothing_of_the_network(open_page):
    page = open_page("single.html")
    assert page.complaints == []
    reached = page.evaluate(
        """async () => {
            const image = new Image();
            const refused = new Promise((done) => { image.onerror = () => done("refused"); });
            image.src = "https://example.org/x.png";
            const fetched = await fetch("https://example.org/").catch(() => "refused");
            return [await refused, fetched];
        }"""
    )
    assert reached == ["refused", "refused"]
    said = [one for one in page.complaints if "Content Security Policy" in one]
    for address in ("https://example.org/x.png'", "https://example.org/'"):
        assert any(address in one for one in said), page.complaints


def test_a_browser_that_cannot_unpack_says_so(open_page):
    page = open_page("single.html", setup="delete globalThis.DecompressionStream")
    assert page.locator("#trouble").is_visible()
    assert page.locator("#controls").is_hidden()
    assert page.locator("table.measures").is_visible()
    assert "DecompressionStream" in page.complaints[0]
