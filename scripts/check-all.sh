#!/bin/sh
# Runs every check of the Makefile that this machine can, one after another, and ends with a table. With names, only those.
# Exits 1 when one failed. The logs are in .build/check-all.
set -u
cd "$(dirname "$0")/.."
all="test check test-postgres web c python jvm flutter conformance tsan differential interop fuzz openapi metrics otlp proxies packaging deploy examples compat oauth webhooks stream away exports torture demo-cluster torture-cluster service bench"
folder="$PWD/.build/check-all"
mkdir -p "$folder"
table="$folder/table"
: >"$table"
failed=0
# Why this machine cannot run a check; nothing when it can.
obstacle() {
    case "$1" in
    service) [ "$(id -u)" -eq 0 ] || echo "needs root" ;;
    metrics | proxies) [ "$(uname -s)" = Linux ] || echo "needs Debian's packages" ;;
    packaging) command -v systemd-analyze >/dev/null || command -v dpkg >/dev/null || echo "needs systemd or dpkg" ;;
    esac
}
for target in ${*:-$all}; do
    why="$(obstacle "$target")"
    if [ -n "$why" ]; then
        printf '%-14s left out  %8s  %s\n' "$target" "" "$why" >>"$table"
        continue
    fi
    echo "check-all: $target"
    began="$(date +%s)"
    if make --no-print-directory "$target" >"$folder/$target.log" 2>&1 </dev/null; then
        outcome=passed
        # What a script could not look at is in its own words.
        why="$(grep -hiE 'skipped|not checked|is not (here|installed)' "$folder/$target.log" | head -n 1 | cut -c 1-80)"
    else
        outcome=FAILED
        failed=1
        why=".build/check-all/$target.log: $(tail -n 1 "$folder/$target.log" | cut -c 1-60)"
    fi
    printf '%-14s %-8s  %6d s  %s\n' "$target" "$outcome" "$(($(date +%s) - began))" "$why" >>"$table"
done
echo
cat "$table"
exit "$failed"
