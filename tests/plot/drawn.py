"""What is written on an Axes."""

from matplotlib.legend import Legend
from matplotlib.offsetbox import AnchoredText


def notes(ax):
    """Return the notes and keys on an Axes, those of earlier calls first."""
    legend = ax.get_legend()
    found = [one for one in ax.artists if isinstance(one, AnchoredText | Legend)]
    return found if legend is None else [*found, legend]


def words(note):
    """Return the text of a note or of a key."""
    if isinstance(note, AnchoredText):
        return note.txt.get_text()
    lines = [note.get_title().get_text(), *(text.get_text() for text in note.get_texts())]
    return "\n".join(filter(None, lines))


def written(ax):
    """Return all text on an Axes but that of its axes."""
    return "\n".join([*map(words, notes(ax)), *(text.get_text() for text in ax.texts)])
