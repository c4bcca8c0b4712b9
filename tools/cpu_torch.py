"""Print the options that make pip install torch, if a build without GPU libraries is available.

Usage: python tools/cpu_torch.py pyproject.toml

A dry run of pip reports the build and its requirements without downloading it. A build with GPU
libraries has several gigabytes: it is left out, with a message, and tests that need torch are
skipped.
"""

import json
import platform
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

GROUP = "torch-companions"
# Prefixes of distributions with GPU libraries.
_GPU = ("cuda", "nvidia", "pytorch-triton", "rocm", "triton")
# Metadata is a few kilobytes; whatever takes longer than this many seconds is a download.
_TIMEOUT = 180


def pinned(pyproject: str) -> str:
    """Return the requirement on torch, such as "torch==2.13.0"."""
    (found,) = [
        one
        for one in tomllib.loads(pyproject)["dependency-groups"][GROUP]
        if one.startswith("torch==")
    ]
    return found


def gpu_libraries(report: dict[str, Any], system: str = platform.system()) -> list[str]:
    """Return what the build in pip's report needs of GPU libraries on a system."""
    (torch,) = [one["metadata"] for one in report["install"] if one["metadata"]["name"] == "torch"]
    found = []
    for one in torch.get("requires_dist", []):
        name, _, marker = one.partition(";")
        elsewhere = "platform_system" in marker and f'"{system}"' not in marker
        if name.lower().startswith(_GPU) and not elsewhere and "extra" not in marker:
            found.append(name.strip())
    return found


def ask_pip(requirement: str) -> dict[str, Any] | None:
    """Return pip's report on what it would install; None if there is none."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--no-deps"]
    command += ["--ignore-installed", "--only-binary=torch", "--report", "-", requirement]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main(pyproject: Path) -> None:
    requirement = pinned(pyproject.read_text())
    report = ask_pip(requirement)
    if report is not None and not gpu_libraries(report):
        print(f"--group {GROUP}")
        return
    what = "pip finds no build" if report is None else "pip finds only a build with GPU libraries"
    print(
        f"== torch is left out and its tests skipped: {what} of {requirement} for Python "
        f"{platform.python_version()} (TORCH={GROUP} installs whatever there is)",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
