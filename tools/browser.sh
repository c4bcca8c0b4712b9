#!/bin/sh
# Install a browser for the tests of the report, where that is possible; it is optional.
set -eu
export DEBIAN_FRONTEND=noninteractive

if command -v chromium >/dev/null; then
    exit 0
fi
if ! { [ "$(id -u)" = 0 ] && apt-get -qq update && \
    apt-get -qq -y install --no-install-recommends chromium; } >/dev/null 2>&1; then
    echo "no chromium here: tests that open the report in a browser will be skipped" >&2
fi
