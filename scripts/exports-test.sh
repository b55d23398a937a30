#!/bin/sh
# Loads a gateway's hourly files into DuckDB (from PyPI) and, where it is installed, PostgreSQL, by the commands that
# docs/exports.md prints. The gateway is killed while it writes them.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/exports
[ -x "$venv/bin/python3" ] || python3 -m venv "$venv"
"$venv/bin/python3" -c 'import duckdb' 2>/dev/null || "$venv/bin/pip" install --quiet duckdb
exec timeout 600 "$venv/bin/python3" scripts/exports.py "$@"
