"""The report in a real browser: it draws, answers, stays within itself, and shows its numbers."""

import csv
import io
import json
import re

import numpy as np
import pytest

from calibrant import assess, by_group
from calibrant.datasets import load_flares, load_rain
from calibrant.formatting import shortened

pytest.importorskip("jinja2")
pytest.importorskip("plotly")

from calibrant.reporting import write_page

HOSTILE = "<script>document.title = 'taken'</script>"
ODD = '=A1 & "100%" %{x} </script><img src=x onerror="document.title = \'taken\'">'
VIEWS = ("smooth", "binned", "isotonic", "cumulative")
# How long anything may take, in milliseconds: on a busy machine a browser may be very slow.
PATIENCE = 300_000


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
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.add_init_script(setup)
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message))
        page.on("request", lambda one: page.complaints.append(one.url) if remote(one.url) else None)
        page.goto((files / name).as_uri())
        page.wait_for_selector("body.drawn, #not-supported:not([hidden])")
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


def settle(page):
    """Wait until the page has been laid out and has answered to its new size."""
    page.evaluate(
        """() => new Promise((done) => {
            requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));
        })"""
    )


def wait_until(page, holds):
    """Wait for what the page says outside of itself, such as on its console."""
    for _ in range(PATIENCE // 100):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"waited in vain; the page said {page.complaints}")


def wait_for_range(page, drawing, expected, axis="xaxis", slack=1e-9):
    """Wait until an axis of a diagram shows these scores."""
    page.wait_for_function(
        """([drawing, axis, expected, slack]) => {
            const shown = document.querySelector(drawing).layout[axis].range;
            return shown.every((end, i) => Math.abs(end - expected[i]) <= slack);
        }""",
        arg=[drawing, axis, [float(end) for end in expected], slack],
    )


def axis_range(page, drawing, axis="xaxis"):
    return page.evaluate("([d, a]) => document.querySelector(d).layout[a].range", [drawing, axis])


def pixel(page, drawing, x, y):
    """Scroll a point of a diagram into the middle of the screen, and return where it is then.

    A pointer reaches nothing beyond the screen, and how far down a diagram lies depends on fonts.
    """
    return page.evaluate(
        """([drawing, x, y]) => {
            const element = document.querySelector(drawing);
            const { xaxis, yaxis } = element._fullLayout;
            const down = () => element.getBoundingClientRect().y + yaxis._offset + yaxis.d2p(y);
            scrollBy({ top: down() - innerHeight / 2, behavior: "instant" });
            return [element.getBoundingClientRect().x + xaxis._offset + xaxis.d2p(x), down()];
        }""",
        [drawing, x, y],
    )


def numbers_in(text):
    """Return the numbers that a text on the page holds, whatever way it writes them."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    plain = re.sub(
        r"\s*×\s*10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "e" + m[1].translate(FROM_SUPERSCRIPTS), plain
    )
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", plain)]


FROM_SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
# Texts of points have four significant digits.
ROUNDED = 5e-4


SLOW = """
const text = Response.prototype.text;
Response.prototype.text = async function () {
  await new Promise((resolve) => setTimeout(resolve, 500));
  return text.call(this);
};
addEventListener("load", () => { window.atLoad = document.body.className; });
"""


def test_the_load_event_which_screenshots_wait_for_waits_for_the_diagrams(open_page):
    page = open_page("single.html", setup=SLOW)
    page.wait_for_function("window.atLoad !== undefined")
    assert page.evaluate("window.atLoad") == "drawn"


def test_every_view_draws_the_numbers_of_the_page(several):
    page = several
    for view in VIEWS:
        drawing = choose(page, view)
        assert page.locator(".view:visible").count() == 1
        shown = page.evaluate(
            "d => document.querySelector(d).data.filter(t => t.meta?.curve).map(t => [t.x, t.y])",
            drawing,
        )
        for (x, y), found in zip(shown, results(page)["assessments"], strict=True):
            if view == "cumulative":
                known = found["cumulative"]["fraction"], found["cumulative"]["deviation"]
            else:
                curve = next(one for one in found["curves"] if one["method"] == view)
                known = curve["x"], curve["y"]
            assert x == known[0]
            assert all(a == b or a is None for a, b in zip(y, known[1], strict=True))
            assert sum(a is not None for a in y) > 5


@pytest.mark.parametrize("height", [1000, 500])
def test_hovering_tells_score_outcome_interval_and_count(single, height):
    page = single
    page.set_viewport_size({"width": 1440, "height": height})
    drawing = choose(page, "binned")
    settle(page)
    found = results(page)["assessments"][0]
    curve = next(one for one in found["curves"] if one["method"] == "binned")
    filled = [n for n in found["bins"]["n"] if n]
    for k in (2, 7):
        shown = page.evaluate(
            "([d, k]) => document.querySelector(d).data.find((t) => t.meta?.curve).text[k]",
            [drawing, k],
        )
        score, outcome, *interval, rows = shown.split("<br>")
        # Without spaces, for the lines of a label are elements of their own.
        words = "".join((score, outcome, *interval, rows))

        def is_shown(k=k, words=words):
            # Again and again: a diagram drawn anew has forgotten where the pointer is.
            page.mouse.move(*pixel(page, drawing, curve["x"][k], curve["y"][k]))
            labels = page.locator(f"{drawing} .hovertext").all_text_contents()
            return any(words in label for label in labels)

        wait_until(page, is_shown)
        assert score.startswith("score ")
        assert numbers_in(score) == pytest.approx([curve["x"][k]], rel=ROUNDED)
        assert outcome.startswith("observed ")
        assert numbers_in(outcome) == pytest.approx([curve["y"][k]], rel=ROUNDED)
        assert rows.startswith(f"{filled[k]} rows in ")
        (interval,) = interval
        limits = [100 * curve["level"], curve["low"][k], curve["high"][k]]
        assert numbers_in(interval) == pytest.approx(limits, rel=ROUNDED)
    page.set_viewport_size({"width": 1440, "height": 1000})


def test_the_keyboard_reaches_views_and_points(several):
    page = several
    page.locator("input[name=view][value=smooth]").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_selector("#view-binned .main-svg")
    page.locator("#view-binned .diagram").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#announcement").text_content()
    curve = results(page)["assessments"][0]["curves"][1]
    assert first.startswith(f"{HOSTILE}, score ")
    # The name has no digits.
    known = [curve["x"][0], curve["y"][0]]
    assert numbers_in(first)[:2] == pytest.approx(known, rel=ROUNDED)
    page.keyboard.press("ArrowDown")
    assert page.locator("#announcement").text_content().startswith(ODD)
    page.keyboard.press("End")
    assert page.locator("#announcement").text_content().endswith("to 1")
    page.wait_for_function(
        "() => document.querySelectorAll('#view-binned .hovertext').length === 1"
    )


def test_zoom_by_dragging_and_by_buttons(single):
    page = single
    drawing = choose(page, "smooth")
    settle(page)
    whole = axis_range(page, drawing)
    assert whole == pytest.approx([-0.02, 1.02])
    start = pixel(page, drawing, 0.2, 0.4)
    end = (pixel(page, drawing, 0.6, 0.4)[0], start[1] - 40)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
    # To within a few pixels.
    wait_for_range(page, drawing, [0.2, 0.6], slack=0.01)
    zoomed = axis_range(page, drawing)
    page.get_by_role("button", name="Light").or_(page.get_by_role("button", name="Dark")).click()
    settle(page)
    wait_for_range(page, drawing, zoomed)
    page.get_by_role("button", name="Reset").click()
    wait_for_range(page, drawing, whole)
    page.get_by_role("button", name="Zoom in").click()
    middle, reach = np.mean(whole), 0.3 * np.ptp(whole)
    wait_for_range(page, drawing, [middle - reach, middle + reach])
    page.get_by_role("button", name="Reset").click()
    wait_for_range(page, drawing, whole)


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
    assert set(page.evaluate(models, drawing)) == {-1, 0, 1}


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
            assert values == [one["bias_corrected"], one["low"], one["high"]]
            # Two figures of the width of the interval.
            width = one["high"] - one["low"]
            (texts,) = zip(*map(numbers_in, shown.all_text_contents()), strict=True)
            assert texts == pytest.approx(values, abs=0.06 * width)
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
    assert values == [row[name] for row in rows for name in ("bias_corrected", "low", "high")]
    page.wait_for_function(
        "() => document.querySelectorAll('figure.groups .ytick text').length === 3"
    )
    ticks = page.locator("figure.groups .ytick text").all_text_contents()
    assert ticks == ["--series-2", shortened(HOSTILE, 22), "(none)"]
    page.locator("figure.groups .diagram").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.locator("#announcement").text_content().startswith(f"{HOSTILE}, smECE ")


def test_long_names_of_groups_push_nothing_out_of_sight(open_page):
    page = open_page("long.html")
    page.set_viewport_size({"width": 900, "height": 800})
    settle(page)
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
    settle(page)
    for view in VIEWS:
        drawing = choose(page, view)
        page.wait_for_function(
            "([d, w]) => document.querySelector(d).layout.width <= w", arg=[drawing, width]
        )
        page.wait_for_function("w => document.documentElement.scrollWidth === w", arg=width)
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
    settle(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator(".diagram .main-svg:visible").count() >= len(VIEWS)
    assert page.locator("table.bins:visible").count() == 2
    assert page.locator("button:visible").count() == 0
    assert (
        page.evaluate("document.querySelector('.diagram').layout.font.color") == "rgb(29, 29, 27)"
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen", color_scheme="light")
    settle(page)
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
    for address in ("https://example.org/x.png'", "https://example.org/'"):
        wait_until(page, lambda: any(is_refusal(one, address) for one in page.complaints))  # noqa: B023


def is_refusal(complaint, address):
    return "Content Security Policy" in complaint and address in complaint


def test_a_browser_that_cannot_unpack_says_so(open_page):
    page = open_page("single.html", setup="delete globalThis.DecompressionStream")
    assert page.locator("#not-supported").is_visible()
    assert page.locator("#controls").is_hidden()
    assert page.locator("table.measures").is_visible()
    wait_until(page, lambda: any("DecompressionStream" in one for one in page.complaints))
