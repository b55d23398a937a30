#!/bin/sh
# Runs the test of the dashboard (scripts/browser-test.py) with what it needs: Chromium from the system's packages, and
# Playwright and axe from PyPI in .venv. Where they cannot be installed, it says so and skips the test.
set -eu
cd "$(dirname "$0")/.."

skip() {
    printf 'browser: skipped, %s\n' "$1" >&2
    exit 0
}

said="$(scripts/setup.sh browser 2>&1)" || skip "Chromium cannot be installed here ($(printf '%s\n' "$said" | tail -n 1))"
python=.venv/bin/python
python3 -m venv .venv >/dev/null 2>&1 || skip "python3 cannot make .venv here"
$python -m pip install -q --disable-pip-version-check --retries 1 playwright axe-playwright-python >/dev/null 2>&1 ||
    skip "PyPI cannot be reached, and .venv has no Playwright"
# With a PostgreSQL server beside it where there is one: two gateways share it.
beside=""
for initdb in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb; do
    if [ -x "$initdb" ]; then beside="scripts/postgresql.sh run --fast"; fi
done
exec $beside $python scripts/browser-test.py "$@"
