#!/bin/sh
# Kills the gateway of a `countersign demo` with SIGKILL three times. The demo then checks that each event is in the database
# exactly once. Arguments are passed to the demo; COUNTERSIGN is the path of a built program. The exit status is the demo's, or 1
# after fewer than three kills.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${COUNTERSIGN:-}" ]; then
    swift build --product countersign-cli
    COUNTERSIGN=.build/debug/countersign-cli
fi
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
"$COUNTERSIGN" demo "$@" >"$folder/table" 2>"$folder/talk" &
demo=$!

kills=0 last=""
while [ "$kills" -lt 3 ]; do
    sleep 0.2
    kill -0 "$demo" 2>/dev/null || break
    # The demo prints the process id of each new gateway. It records for 8 seconds, longer than three kills take.
    gateway="$(sed -n 's/.*(process \([0-9]*\)).*/\1/p' "$folder/talk" | tail -n 1)"
    [ "$gateway" != "$last" ] || continue
    sleep 1
    kill -9 "$gateway" && kills=$((kills + 1)) last="$gateway"
done

status=0
wait "$demo" || status=$?
cat "$folder/talk" "$folder/table"
if [ "$kills" -lt 3 ]; then
    echo "kill-test: the demo ended after only $kills kills" >&2
    exit 1
fi
echo "kill-test: the gateway was killed $kills times; the demo ended with $status"
exit "$status"
