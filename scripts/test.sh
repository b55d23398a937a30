#!/bin/sh
# Runs every Swift test. What failed is said once more at the end: behind thousands of lines nobody finds it.
set -eu
cd "$(dirname "$0")/.."

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
{ swift test --disable-xctest "$@" 2>&1 || echo failed >"$folder/failed"; } | tee "$folder/log"
[ -e "$folder/failed" ] || exit 0
{
    echo
    echo "test: these failed:"
    # An issue is a line with its place, and lines of comment behind it.
    awk '/^✘/ { shown = 1 } /^(◇|✔)/ { shown = 0 } shown || /error:/' "$folder/log"
} >&2
exit 1
