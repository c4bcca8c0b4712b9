"""Check that a built site is complete and loads nothing from other hosts.

Usage: python tools/check_site.py SITE

Links that a reader may follow can go anywhere; what a page loads by itself (scripts, styles, fonts,
pictures) must be a file of the site.
"""

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
}
# The theme loads a renderer from another host if a page has one of these.
_FETCHED_CLASSES = {"mermaid", "glightbox", "arithmatex"}
_IN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?(?P<target>[^'\")\s]+)")


class _Page(HTMLParser):
    """Collects what a page loads, what it links to, and the classes it uses."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.linked: list[str] = []
        self.classes: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.classes.update(attributes.get("class", "").split())
        if tag == "link" and attributes.get("rel") in {"canonical", "prev", "next"}:
            return
        for name, value in attributes.items():
            if (tag, name) in _LOADED:
                self.loaded.append(value)
            elif (tag, name) == ("a", "href"):
                self.linked.append(value)


def _is_remote(target: str) -> bool:
    return target.startswith("//") or urlsplit(target).scheme in {"http", "https"}


def _is_missing(target: str, page: Path, site: Path) -> bool:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or not parts.path:
        return False
    base = site if parts.path.startswith("/") else page.parent
    return not (base / unquote(parts.path).lstrip("/")).exists()


def _in_page(page: Path, site: Path) -> Iterator[str]:
    found = _Page(page.read_text())
    yield from (f"loads {target} from elsewhere" for target in found.loaded if _is_remote(target))
    yield from (
        f"points to {target}, which is not there"
        for target in found.loaded + found.linked
        if _is_missing(target, page, site)
    )
    yield from (
        f"holds a {name}, drawn from elsewhere" for name in found.classes & _FETCHED_CLASSES
    )


def _in_style(style: Path) -> Iterator[str]:
    targets = (match["target"] for match in _IN_STYLE.finditer(style.read_text()))
    yield from (f"loads {target} from elsewhere" for target in targets if _is_remote(target))


def problems(site: Path) -> Iterator[str]:
    """Yield one line per fault of the site."""
    # The page for a wrong address is served under any path, so its links start at the root.
    for page in sorted(site.rglob("*.html")):
        yield from (f"{page.relative_to(site)} {problem}" for problem in _in_page(page, site))
    for style in sorted(site.rglob("*.css")):
        yield from (f"{style.relative_to(site)} {problem}" for problem in _in_style(style))


def main(site: Path) -> int:
    if not (site / "index.html").exists():
        print(f"{site} is not a site")
        return 1
    found = list(problems(site))
    print("\n".join(found) or f"{site}: complete, and nothing is loaded from other hosts")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
