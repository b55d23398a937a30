#!/bin/sh
# Kills a gateway and a nats-server while one feeds the other, and compares what both have.
# With "away" first: for an hour the server is away, and a webhook never answers.
set -eu
cd "$(dirname "$0")/.."
server="$(scripts/nats-server.sh)"
script=stream-test.py
if [ "${1:-}" = away ]; then
    script=away.py
    shift
fi
exec timeout 7200 .venv/stream/bin/python3 "scripts/$script" --nats-server "$server" "$@"
