#!/bin/sh
# Tests the Python client for readers of events (Examples/Consumers) against a server that plays the gateway. With a
# gateway's program that has consumers also against that one: two workers, of which one is killed again and again.
# usage: consumers-test.sh [.build/debug/countersign-cli]
set -eu
cd "$(dirname "$0")/.."
program="${1:-.build/debug/countersign-cli}"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
(cd Examples/Consumers && python3 -B -W error::ResourceWarning -m unittest >"$folder/tests" 2>&1) || {
    cat "$folder/tests" >&2
    echo "consumers: a test failed" >&2
    exit 1
}
echo "consumers: $(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$folder/tests") tests passed"

if [ ! -x "$program" ]; then
    echo "consumers: no gateway is built, so none was read from" >&2
elif ! "$program" consumer list --help >/dev/null 2>&1; then
    echo "consumers: the gateway that is built has no consumers; build it again" >&2
else
    python3 -B scripts/consumers-test.py "$program"
fi
