#!/bin/sh
# Runs the Swift tests with these arguments; without arguments all tests except GatewayPostgreSQLTests (make check ONLY=postgresql).
# Repeats failures at the end of the output. Stops after a time limit and names the tests that have not ended.
set -eu
cd "$(dirname "$0")/.."
# Seconds: ten times the duration on two idle cores.
limit=600
if [ "${COUNTERSIGN_TEST_STORAGE:-}" = postgresql ]; then limit=1500; fi

kill_tree() {
    for child in $(pgrep -P "$1"); do kill_tree "$child"; done
    kill -KILL "$1" 2>/dev/null || true
}

# Built first, so that the time limit covers only the tests.
swift build --build-tests
# The linter reads ELF object files.
if [ "$(uname -s)" = Linux ]; then scripts/text-lint.py; fi

# If there is enough memory, tests store their files there. On a disk they would mostly wait for flushes. `make prove`
# tests durability.
room="$(df -Pk /dev/shm 2>/dev/null | awk 'END { print $4 + 0 }')"
if [ -z "${TMPDIR:-}" ] && [ "$room" -gt 4000000 ] && [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi

# With more parallel tests, the tests take twice as long on two cores. Stacks of thrown errors are off, because no
# report shows them.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-8}"
export SWT_SWIFT_ERROR_BACKTRACING_ENABLED=0
# malloc keeps freed memory for the next test instead of returning it to the system.
export MALLOC_TRIM_THRESHOLD_=1000000000 MALLOC_MMAP_THRESHOLD_=1000000000 MALLOC_TOP_PAD_=16777216
# Without colors, because failures are found by the beginning of their lines.
export NO_COLOR=1

folder="$(mktemp -d)"
mkdir "$folder/files" "$folder/running"
if [ -n "${TMPDIR:-}" ]; then export POSTGRESQL_TMPDIR="$TMPDIR"; fi
export TMPDIR="$folder/files"

# run NAME COMMAND...: runs the command. Records its process id, its output and whether it failed.
run() {
    name="$1"
    shift
    {
        # shellcheck disable=SC2016
        sh -c 'echo $$ >"$0" && exec "$@"' "$folder/running/$name" "$@" 2>&1 || touch "$folder/failed"
    } | tee "$folder/$name.log"
    rm -f "$folder/running/$name"
}
# Prints the command that runs the tests: on Linux the test program, because parallel `swift test` overwrite each other's build plan.
tests() {
    if [ "$(uname -s)" = Darwin ]; then
        echo swift test --skip-build --disable-xctest
    else
        echo .build/debug/countersignPackageTests.xctest --testing-library swift-testing
    fi
}

# stop SIGNAL: ends the running commands. TERM lets scripts/postgresql.sh stop its server and remove its files.
stop() {
    for file in "$folder"/running/*; do
        [ -e "$file" ] || continue
        if [ "$1" = TERM ]; then kill -TERM "$(cat "$file")" || true; else kill_tree "$(cat "$file")"; fi
    done
}

{
    sleep "$limit"
    touch "$folder/stopped"
    stop TERM
    sleep 10
    stop KILL
} >/dev/null 2>&1 &
watchdog=$!
trap 'kill_tree "$watchdog"; rm -rf "$folder"' EXIT
# Background processes do not receive Ctrl-C.
trap 'stop TERM 2>/dev/null; exit 130' INT TERM

postgresql='^GatewayPostgreSQLTests\.'
# These suites mostly wait for programs that they start, so they run in parallel with the other tests.
programs='^CountersignCLITests\.(KillTests|ExampleTests)/'
# shellcheck disable=SC2046
if [ $# -gt 0 ] && [ "${COUNTERSIGN_POSTGRESQL:-1}" != 0 ]; then
    # A gateway may take 22 connections, and some tests have several gateways.
    run all scripts/postgresql.sh run --fast --max-connections 600 $(tests) "$@"
elif [ $# -gt 0 ]; then
    run all $(tests) "$@"
elif [ "$(uname -s)" = Darwin ]; then
    run all $(tests) --skip "$postgresql"
else
    run programs $(tests) --filter "$programs" >/dev/null &
    waits_for_programs=$!
    run all $(tests) --skip "$postgresql" --skip "$programs"
    wait "$waits_for_programs"
    cat "$folder/programs.log"
fi
echo
sed -nE 's/^➜ Test .* skipped: "(.*)"$/\1/p' "$folder"/*.log | sort | uniq -c | sed -E 's/^ *([0-9]+) /test: skipped \1: /'
[ -e "$folder/failed" ] || exit 0
{
    echo
    echo "test: failures:"
    # swift-testing prints an issue as a line with the source location, followed by lines of comment.
    awk '/^✘/ { shown = 1 } /^(◇|✔)/ { shown = 0 } shown || (/error:/ && !/^(◇|✔)/)' "$folder"/*.log
    if [ -e "$folder/stopped" ]; then
        echo "test: stopped after $limit s; tests that had not ended:"
        awk '
            /^◇ Test [^ ]*\(.*\) started\.$/ { sub(/ started\.$/, ""); sub(/^◇ Test /, ""); begun[$0] = 1 }
            /^(✔|✘) Test .* (passed|failed) after / {
                sub(/^(✔|✘) Test /, ""); sub(/ (passed|failed) after .*/, "")
                sub(/ with [0-9]+ test cases?$/, ""); delete begun[$0]
            }
            END { for (test in begun) print "  " test }' "$folder"/*.log
    fi
} >&2
exit 1
