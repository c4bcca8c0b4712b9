"""The check of the built site finds what it should."""

import pytest

from tools.check_site import main, problems


@pytest.fixture
def found(tmp_path):
    """Return a function that lists the problems of a site whose front page has this body."""

    def check(body):
        (tmp_path / "index.html").write_text(f"<html><body>{body}</body></html>")
        (tmp_path / "other.html").write_text("<p id=here>Here</p>")
        (tmp_path / "style.css").write_text("p { color: red; background: url(data:,) }")
        return list(problems(tmp_path))

    return check


@pytest.mark.parametrize(
    "body",
    [
        '<a href="https://example.org/">a link may leave the site</a>',
        '<a href="other.html#here">here</a><a href="#top">top</a>',
        '<link rel="stylesheet" href="style.css">',
        '<link rel="canonical" href="https://example.org/">',
        '<img src="data:image/gif;base64,">',
    ],
)
def test_a_sound_page_passes(found, body, tmp_path):
    assert found(body) == []
    assert main(tmp_path) == 0


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<link href="http://example.org/font" rel="preconnect">',
        '<img src="missing.png">',
        '<a href="missing.html">gone</a>',
        '<pre class="wide mermaid">a --> b</pre>',
    ],
)
def test_a_broken_page_is_found(found, body, tmp_path):
    assert len(found(body)) == 1
    assert main(tmp_path) == 1


def test_a_font_fetched_by_a_style_is_found(found, tmp_path):
    found("")
    (tmp_path / "style.css").write_text("@import 'https://example.org/font.css';")
    assert list(problems(tmp_path)) == [
        "style.css loads https://example.org/font.css from elsewhere"
    ]


def test_an_empty_folder_is_no_site(tmp_path):
    assert main(tmp_path / "nothing") == 1
