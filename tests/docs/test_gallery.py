"""The gallery: a sound notebook, committed before it ran, with every kind of picture in it."""

from inspect import isfunction
from pathlib import Path

import pytest

from calibrant import plot

nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbclient")

from tools.notebooks import write_page  # noqa: E402

FOLDER = Path(__file__).parents[2] / "docs" / "gallery"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
# One pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.name)
def notebook(request):
    return nbformat.read(request.param, as_version=4)


def test_there_is_a_gallery():
    assert FOLDER / "gallery.ipynb" in NOTEBOOKS


def test_it_is_a_sound_notebook(notebook):
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")


def test_no_output_is_kept(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_every_function_that_draws_is_shown():
    notebook = nbformat.read(FOLDER / "gallery.ipynb", as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    drawing = [name for name in plot.__all__ if isfunction(getattr(plot, name))]
    assert len(drawing) >= 5
    assert [name for name in drawing if f"plot.{name}(" not in code] == []


def page_of(tmp_path, *outputs):
    """Return the page of a notebook with one heading and one cell that gave these outputs."""
    v4 = nbformat.v4
    cells = [v4.new_markdown_cell("# A title"), v4.new_code_cell("1 + 1", outputs=list(outputs))]
    page = tmp_path / "page.md"
    write_page(v4.new_notebook(cells=cells), page)
    return page.read_text()


def shown(metadata=None, **data):
    data = {name.replace("_", "/"): value for name, value in data.items()}
    return nbformat.v4.new_output("display_data", data=data, metadata=metadata or {})


def test_words_are_written_out(tmp_path):
    said = nbformat.v4.new_output("stream", name="stdout", text="said\n")
    page = page_of(tmp_path, said, shown(text_plain="2"))
    code = "```py\n1 + 1\n```\n\n```text\nsaid\n```\n\n```text\n2\n```\n"
    assert page == f"# A title\n\n{code}"


def test_html_goes_before_a_picture(tmp_path):
    page = page_of(tmp_path, shown(text_plain="2", image_png=PNG, text_html="<b>2</b>"))
    assert page.endswith("\n\n<b>2</b>\n")


def test_a_picture_is_called_after_its_heading_and_replaces_the_one_before(tmp_path):
    picture = shown({"image/png": {"width": 300}}, text_plain="2", image_png=PNG)
    for _ in range(2):
        page = page_of(tmp_path, picture)
    assert page.endswith('![A title](page/a-title.png){ width="300" }\n')
    assert (tmp_path / "page" / "a-title.png").read_bytes().startswith(b"\x89PNG")


def test_two_pictures_under_one_heading_are_refused(tmp_path):
    with pytest.raises(RuntimeError, match="'A title'"):
        page_of(tmp_path, shown(image_png=PNG), shown(image_png=PNG))


def test_a_warning_fails_the_build(tmp_path):
    warned = nbformat.v4.new_output("stream", name="stderr", text="FutureWarning: soon")
    with pytest.raises(RuntimeError, match=r"'A title'.*soon"):
        page_of(tmp_path, warned)
