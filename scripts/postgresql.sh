#!/bin/sh
# Runs a command with a temporary PostgreSQL server: scripts/postgresql.sh run [--fast] [--max-connections N] COMMAND...
set -eu
cd "$(dirname "$0")/.."
exec python3 -B -m tools postgresql "$@"
