#!/bin/sh
# Runs scripts/otlp-test.py in a virtual environment (.venv/otlp) with OpenTelemetry's own messages, as a package from PyPI.
set -eu
cd "$(dirname "$0")/.."
venv=.venv/otlp
if ! "$venv/bin/python" -c 'import opentelemetry.proto' 2>/dev/null; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check "opentelemetry-proto>=1.30,<2"
fi
[ -n "${COUNTERSIGN:-}" ] || swift build --product countersign-cli
"$venv/bin/python" scripts/otlp-test.py "${COUNTERSIGN:-$PWD/.build/debug/countersign-cli}"
