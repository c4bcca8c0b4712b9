"""``python -m studies``: run the experiments of the papers behind calibrant."""

from __future__ import annotations

import argparse
from pathlib import Path

from studies import OUT, TITLES, run


def main(arguments: list[str] | None = None) -> None:
    """Run the named studies, or list all of them."""
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description="Run the experiments of the papers behind calibrant. Writes a page that sets "
        "published and reproduced numbers side by side, with tables and figures. An interrupted "
        "run continues where it stopped. Without a name, lists names and titles.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="studies to run; all for all")
    parser.add_argument("--quick", action="store_true", help="measure far less, in seconds")
    parser.add_argument("--out", default=OUT, metavar="DIR", help=f"folder to write into ({OUT})")
    given = parser.parse_args(arguments)
    names = list(TITLES) if given.names == ["all"] else given.names
    for name in names:
        if name not in TITLES:
            parser.error(f"there is no study {name!r}; there are {', '.join(TITLES)}")
    if Path(given.out).exists() and not Path(given.out).is_dir():
        parser.error(f"--out must be a folder; {given.out!r} is a file")
    if not names:
        print("\n".join(f"{name:16}  {title}" for name, title in TITLES.items()))
    for name in names:
        done = run(name, out=given.out, quick=given.quick)
        print(f"wrote {done.page} and {len(done.files)} tables and figures", flush=True)


if __name__ == "__main__":
    main()
