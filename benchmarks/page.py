"""Write the page of what a run found.

python -m benchmarks.page RESULTS [FOLDER]  # docs, unless another folder is given
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks import pictures
from benchmarks.peers import is_peer
from benchmarks.results import OURS, Contest, Ratio, Results, figure
from benchmarks.targets import TARGETS
from benchmarks.tasks import TASKS, Task

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_HEAD = """\
# How fast it is

{extent}Every number here is a ratio of two times taken in turn in one process: seconds would be
those of one machine. A cell such as 12 (11 to 14) is the median over rounds, the least and the
greatest. A row with the name of a package says how many times as long as calibrant that takes; a
row "calibrant, against" says how many times as long as some limit calibrant takes, such as reading
the numbers once.

Curves are in yardsticks, the time in which numpy adds up two columns of a million rows, taken anew
in every round. Packages get their input in the type that they like best, converted before the clock
runs{compiled}. One that raises or gives another value says so below its table; one that
would take too long is not tried at larger sizes.

`make bench` repeats all this, set-up included, and writes `build/benchmarks/results.json`;
`python -m benchmarks.page build/benchmarks/results.json` makes this page of it. {versions}
"""
_PICTURES = {
    "time": "Time against rows, in yardsticks, of calibrant and its peers",
    "memory": "Peak of memory beyond the input against rows, of calibrant and its peers",
    "measures": "Time and memory of calibrant's measures against rows",
    "classes": "Time and memory of class-wise errors against classes",
}
_AROUND = {
    "import": "a fresh interpreter and the import",
    "merge": "the sum of 1000 sketches",
    "report": "`Assessment.to_html`",
    "parquet": "the sketch of a Parquet file",
    "ece, numpy alone": "`ece` without compiled code",
    "smooth_ece, numpy alone": "`smooth_ece` without compiled code",
    "sketch, numpy alone": "`Sketch.update` without compiled code",
    "ece, growth": "`ece` as rows grow a hundredfold",
    "smooth_ece, growth": "`smooth_ece` as rows grow a hundredfold",
    "sketch, growth": "`Sketch.update` as rows grow a hundredfold",
    "ece, few rows": "`ece` of a thousand rows",
    "smooth_ece, few rows": "`smooth_ece` of a thousand rows",
}


def page(results: Results) -> str:
    """Return the page in Markdown."""
    named = ", ".join(f"{name} {version}" for name, version in results.versions.items())
    parts = [
        _HEAD.format(
            extent="From a quick run with small sizes. " if results.is_quick else "",
            compiled="; the extra `fast` is installed" if results.is_compiled else "",
            versions=f"Versions: {named}.",
        ),
        "## Aims\n",
        *_targets(results),
        "\n## Curves\n",
        *(f"![{said}](pictures/benchmarks-{name}.svg)\n" for name, said in _PICTURES.items()),
        *(line for task in TASKS for line in _section(task, results.of_task(task.name))),
        "\n## Around the measures\n",
        *_around(results),
    ]
    return "\n".join(parts) + "\n"


def _targets(results: Results) -> Iterator[str]:
    yield "| | aim | measured | reached |\n|---|---|---|---|"
    for target in TARGETS:
        judged = target.judged(results)
        yield f"| {target.what} | {target.aim} | {_cell(judged.measured)} | {judged.verdict} |"


def _section(task: Task, contests: list[Contest]) -> Iterator[str]:
    """Yield a table with a row a contestant and a column a size, and what is to be said."""
    if not contests:
        return
    sizes = [f"{_size(contest.size)} {task.unit}" for contest in contests]
    yield f"\n## {task.title}\n"
    yield f"| | {' | '.join(sizes)} |\n|---{'|---' * len(sizes)}|"
    names = dict.fromkeys(entry.name for contest in contests for entry in contest.entries)
    for name in sorted(names, key=is_peer, reverse=True):
        if name != OURS:
            cells = (_cell(_told(contest, name)) for contest in contests)
            yield f"| {_row_name(name)} | {' | '.join(cells)} |"
    yield from _memory(contests)
    notes = [f"- {name}: {note}." for name in names if (note := _note(contests, name))]
    if notes:
        yield "\n" + "\n".join(notes)


def _memory(contests: list[Contest]) -> Iterator[str]:
    found = [contest.entry(OURS).memory for contest in contests]
    if any(memory is not None for memory in found):
        cells = ("–" if memory is None else f"{memory:.0f}" for memory in found)
        yield f"| calibrant's memory beyond the input, MiB | {' | '.join(cells)} |"


def _told(contest: Contest, name: str) -> Ratio | None:
    return contest.ratio(name) if is_peer(name) else contest.ratio(OURS, name)


def _row_name(name: str) -> str:
    return name if is_peer(name) else f"calibrant, against {name}"


def _note(contests: list[Contest], name: str) -> str:
    """Return what is said of a contestant, each thing once, with the sizes it was said at."""
    said: dict[str, list[str]] = {}
    for contest in contests:
        for part in filter(None, contest.entry(name).note.split("; ")):
            words, value = _apart(part)
            said.setdefault(words, []).append(f"{value}{_size(contest.size)}")
    return "; ".join(_with_sizes(words, sizes) for words, sizes in said.items())


def _apart(part: str) -> tuple[str, str]:
    """Tell what is said at one size, a value, from what may be said at several."""
    if part.startswith("too slow"):
        return "too slow", ""
    if part.startswith("gives"):
        value, _, why = part.partition(": ")
        return why or "differs", value.removeprefix("gives ") + " at "
    return part.rstrip("."), ""


def _with_sizes(words: str, sizes: list[str]) -> str:
    if words == "too slow":
        return f"not tried from {sizes[0]} on"
    is_of_size = words.startswith("raised") or " at " in sizes[0]
    return f"{words} ({', '.join(sizes)})" if is_of_size else words


def _around(results: Results) -> Iterator[str]:
    yield "| | | ratio |\n|---|---|---|"
    for task, title in _AROUND.items():
        contest = results.contest(task)
        size = f", {_size(contest.size)} rows" if contest.size > 1000 else ""
        for entry in contest.entries:
            if entry.name != OURS:
                ratio = _cell(_told(contest, entry.name))
                yield f"| {title}{size} | {_row_name(entry.name)} | {ratio} |"


def _cell(ratio: Ratio | None) -> str:
    if ratio is None:
        return "–"
    if ratio.low == ratio.high:
        return figure(ratio.middle)
    return str(ratio)


def _size(size: int) -> str:
    """Write powers of ten from a thousand on as such."""
    digits = str(size)
    if size >= 1000 and digits.strip("0") == "1":
        return "10" + str(len(digits) - 1).translate(_SUPERSCRIPTS)
    return digits


def main() -> None:
    """Write the page and its pictures."""
    results = Results.load(Path(sys.argv[1]))
    folder = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parents[1] / "docs"
    pictures.draw(results, folder / "pictures")
    (folder / "benchmarks.md").write_text(page(results))
    print(f"wrote {folder / 'benchmarks.md'} and its pictures")


if __name__ == "__main__":
    main()
