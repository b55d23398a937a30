#!/bin/sh
# Makes the site of all documentation from what scripts/docs.sh has built: site.sh [BASE], the path below which it is served.
set -eu
cd "$(dirname "$0")/.."
ls -d .build/docs/*.doccarchive >/dev/null 2>&1 || { echo "site: skipped, there are no archives (no docc?)" >&2; exit 0; }
venv=.venv/docs
if ! "$venv/bin/python" -c 'import markdown' 2>/dev/null; then
    python3 -m venv "$venv" || { scripts/setup.sh venv && python3 -m venv "$venv"; }
    "$venv/bin/pip" install --quiet "markdown>=3.4,<4"
fi
DOCC="$(dirname "$(readlink -f "$(command -v swift)")")/docc"
[ -x "$DOCC" ] || DOCC="$(command -v docc || xcrun --find docc)"
export DOCC
exec "$venv/bin/python" scripts/site.py .build/docs .build/docs/site --base "${1:-}"
