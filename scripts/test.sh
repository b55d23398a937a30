#!/bin/sh
# Runs every Swift test. What failed is said once more at the end: behind thousands of lines nobody finds it.
# A test that never ends is stopped and named, instead of holding everything until somebody looks.
set -eu
cd "$(dirname "$0")/.."
# Five times what they take on two idle cores.
limit=600

kill_tree() {
    for child in $(pgrep -P "$1"); do kill_tree "$child"; done
    kill -KILL "$1" 2>/dev/null || true
}

# Apart, so that the time of a first build is not the tests' own.
swift build --build-tests

# Where there is room, tests keep their files in memory: on a disk they would mostly wait for it to flush, which says
# nothing more. What a flush is for is shown by `make torture`.
room="$(df -Pk /dev/shm 2>/dev/null | awk 'END { print $4 + 0 }')"
if [ -z "${TMPDIR:-}" ] && [ "$room" -gt 4000000 ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi

# The tests of several gateways need a server, which is theirs alone.
server=""
if [ "${COUNTERSIGN_POSTGRESQL:-1}" = 0 ]; then
    echo "test: without PostgreSQL (COUNTERSIGN_POSTGRESQL=0)"
else
    server="scripts/postgresql.sh run --fast"
    if [ -n "${TMPDIR:-}" ]; then export POSTGRESQL_TMPDIR="$TMPDIR"; fi
fi

folder="$(mktemp -d)"
mkdir "$folder/files"
export TMPDIR="$folder/files"
{
    sleep "$limit"
    touch "$folder/stopped"
    # First in a way that lets the server be stopped and removed.
    kill -TERM "$(cat "$folder/pid")"
    sleep 10
    kill_tree "$(cat "$folder/pid")"
} >/dev/null 2>&1 &
watchdog=$!
trap 'kill_tree "$watchdog"; rm -rf "$folder"' EXIT
{
    # shellcheck disable=SC2086
    sh -c 'echo $$ >"$0/pid" && exec "$@"' "$folder" $server swift test --skip-build --disable-xctest "$@" 2>&1 ||
        touch "$folder/failed"
} | tee "$folder/log"
[ -e "$folder/failed" ] || exit 0
{
    echo
    echo "test: these failed:"
    # An issue is a line with its place, and lines of comment behind it.
    awk '/^✘/ { shown = 1 } /^(◇|✔)/ { shown = 0 } shown || /error:/' "$folder/log"
    if [ -e "$folder/stopped" ]; then
        echo "test: stopped after $limit s; these had begun and had not ended:"
        awk '
            /^◇ Test [^ ]*\(.*\) started\.$/ { sub(/ started\.$/, ""); sub(/^◇ Test /, ""); begun[$0] = 1 }
            /^(✔|✘) Test .* (passed|failed) after / {
                sub(/^(✔|✘) Test /, ""); sub(/ (passed|failed) after .*/, "")
                sub(/ with [0-9]+ test cases?$/, ""); delete begun[$0]
            }
            END { for (test in begun) print "  " test }' "$folder/log"
    fi
} >&2
exit 1
