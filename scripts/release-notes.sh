#!/bin/sh
# Prints the section of a version in CHANGELOG.md: release-notes.sh 0.1.0. Fails without such a section.
set -eu
cd "$(dirname "$0")/.."
[ $# -eq 1 ] || { echo "usage: scripts/release-notes.sh VERSION" >&2; exit 2; }
notes="$(awk -v version="$1" '
    /^## / { shown = ($2 == version); next }
    shown' CHANGELOG.md | sed -e '/./,$!d')"
[ -n "$notes" ] || { echo "release-notes: CHANGELOG.md has no section '## $1'" >&2; exit 1; }
printf '%s\n' "$notes"
