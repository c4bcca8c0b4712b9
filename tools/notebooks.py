"""Run the notebooks of the documentation and write what they show as pages.

Usage: python tools/notebooks.py FOLDER

Every NAME.ipynb in the folder becomes NAME.md beside it, with its pictures in the folder NAME, each
named after the heading above it. A cell that fails, or warns, fails the build.
"""

import os
import re
import shutil
import sys
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_SECONDS = 600  # that any one cell may take


def ran(path: Path) -> NotebookNode:
    """Return a notebook with the output of all its cells."""
    # Where no physical cores are to be found, as in a bare container, joblib would complain.
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        # Sockets in a private folder, not ports: other users of the machine have no access.
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})
        NotebookClient(notebook, kernel_name="python3", timeout=_SECONDS, config=config).execute()
    return notebook


class _Page:
    """One notebook as Markdown, its pictures saved on the way."""

    def __init__(self, notebook: NotebookNode, pictures: Path) -> None:
        self.cells = notebook.cells
        self.pictures = pictures
        self.heading = ""

    def parts(self) -> Iterator[str]:
        """Yield cells and outputs in order."""
        for cell in self.cells:
            if cell.cell_type == "markdown":
                for match in _HEADING.finditer(cell.source):
                    self.heading = match["title"]
                yield cell.source
            elif cell.cell_type == "code":
                # Not ```python: those blocks are run by the tests, these have just been run.
                yield f"```py\n{cell.source}\n```"
                yield from (self.shown(output) for output in cell.outputs)

    def shown(self, output: NotebookNode) -> str:
        """Return an output as HTML, else as a picture, else as text."""
        if output.output_type == "stream":
            if output.name == "stderr":
                raise RuntimeError(f"under {self.heading!r} a cell complains: {output.text}")
            return f"```text\n{output.text.rstrip()}\n```"
        if "text/html" in output.data:
            return output.data["text/html"]
        if "image/png" in output.data:
            return self.picture(output)
        return f"```text\n{output.data['text/plain']}\n```"

    def picture(self, output: NotebookNode) -> str:
        """Save a picture; return the Markdown that shows it, as wide as the notebook would."""
        slug = re.sub(r"\W+", "-", self.heading.lower()).strip("-")
        path = self.pictures / f"{slug}.png"
        if path.exists():
            raise RuntimeError(f"there is a picture under {self.heading!r} already")
        self.pictures.mkdir(exist_ok=True)
        path.write_bytes(b64decode(output.data["image/png"]))
        width = output.metadata.get("image/png", {}).get("width")
        size = f'{{ width="{width}" }}' if width else ""
        return f"![{self.heading}]({self.pictures.name}/{path.name}){size}"


def write_page(notebook: NotebookNode, page: Path) -> None:
    """Write a notebook that has run as a page, with its pictures beside it."""
    pictures = page.with_suffix("")
    shutil.rmtree(pictures, ignore_errors=True)
    page.write_text("\n\n".join(_Page(notebook, pictures).parts()) + "\n")


def main(folder: Path) -> None:
    for path in sorted(folder.glob("*.ipynb")):
        write_page(ran(path), path.with_suffix(".md"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
