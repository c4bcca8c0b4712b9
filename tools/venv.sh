#!/bin/sh
# Make the virtual environment DIR, unless it is there, with a pip that supports dependency groups.
# Usage: PYTHON=python3 tools/venv.sh DIR CONSTRAINTS
set -eu
export DEBIAN_FRONTEND=noninteractive
python=${PYTHON:-python3}
dir=$1
constraints=$2

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "calibrant needs Python 3.11 or newer, but $python is $("$python" --version 2>&1): set PYTHON" >&2
    exit 1
fi

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian ships python3 without these two modules.
    if ! { [ "$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y install python3-venv; } \
        >/dev/null 2>&1; then
        echo "Python's venv module is missing: as root, run 'apt-get install python3-venv'" >&2
        exit 1
    fi
fi

"$dir/bin/python" -c '' 2>/dev/null || "$python" -m venv --clear "$dir"
"$dir/bin/python" -m pip install -qq --upgrade --disable-pip-version-check -c "$constraints" pip
