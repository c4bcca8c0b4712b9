"""What a page holds packed: plotly's JavaScript, and the diagrams.

plotly's full build is 4.8 MB; compressed and written in base64 it is 2.0 MB. The page unpacks it,
and its security policy lets this very script run and no other.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from dataclasses import dataclass
from functools import cache

from calibrant.errors import MissingDependencyError

__all__ = ["Library", "packed", "packed_library", "script_hash"]


@dataclass(frozen=True)
class Library:
    """A packed script, its hash, and which version it is."""

    script: str
    hash: str
    version: str


@cache
def packed_library() -> Library:
    """Return plotly's JavaScript; packed once, because that takes half a second."""
    try:
        from plotly.offline import get_plotlyjs, get_plotlyjs_version
    except ImportError:
        raise MissingDependencyError(
            "a report needs plotly", hint="pip install 'calibrant[report]'"
        ) from None
    script = get_plotlyjs()
    return Library(packed(script), script_hash(script), get_plotlyjs_version())


def packed(text: str) -> str:
    """Return text in the zlib format, in base64."""
    return base64.b64encode(zlib.compress(text.encode(), 6)).decode("ascii")


def script_hash(script: str) -> str:
    """Return what a Content-Security-Policy calls an inline script by."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
