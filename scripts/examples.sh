#!/bin/sh
# Builds the examples and runs them together: the daemon records events with tokens that the Python backend signs, a gateway
# stores the events, and a token of the Swift backend is verified.
set -eu
cd "$(dirname "$0")/.."

swift build --product countersign-cli
swift build --package-path Examples
countersign="$PWD/.build/debug/countersign-cli"
examples="$PWD/Examples/.build/debug"
venv=.venv/examples
if [ ! -x "$venv/bin/python" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet PyJWT cryptography
fi

folder="$(mktemp -d)"
pids=""
trap 'kill $pids 2>/dev/null || true; rm -rf "$folder"' EXIT
fail() {
    printf 'examples: %s\n' "$1" >&2
    cat "$folder"/*.log >&2
    exit 1
}
export COUNTERSIGN_DATA="$folder/data"
key="$("$countersign" app create hosts 2>/dev/null)"
"$countersign" key generate --out "$folder" >/dev/null 2>&1
"$countersign" key add hosts "$folder/public.pem" >/dev/null 2>&1
"$countersign" enforcement set hosts required --yes 2>/dev/null
mkfifo "$folder/gateway" "$folder/backend" "$folder/daemon"
"$countersign" serve --port 0 >"$folder/gateway" 2>"$folder/gateway.log" &
pids="$!"
read -r gateway <"$folder/gateway"
"$venv/bin/python" Examples/TokenBackend/token_backend.py "$folder/private.pem" 0 >"$folder/backend" 2>"$folder/backend.log" &
pids="$pids $!"
read -r backend <"$folder/backend"

# A token of the Swift backend is valid only for its user.
"$examples/TokenBackend" "$folder/private.pem" user-1 >"$folder/token"
"$countersign" token verify "$folder/token" --key "$folder/public.pem" --user user-1 >/dev/null 2>&1 || fail "the Swift backend's token"
if "$countersign" token verify "$folder/token" --key "$folder/public.pem" --user user-2 >/dev/null 2>&1; then
    fail "the Swift backend's token is valid for another user"
fi

COUNTERSIGN_URL="$gateway" COUNTERSIGN_WRITE_KEY="$key" TOKEN_URL="$backend/token?user=host-1" STATE_DIRECTORY="$folder" \
    "$examples/LoadDaemon" --user host-1 --seconds 0.2 >"$folder/daemon" 2>"$folder/daemon.log" &
daemon=$!
pids="$pids $daemon"
exec 3<"$folder/daemon"
read -r first <&3
[ "$first" = recording ] || fail "the daemon prints: $first"
sleep 2
kill -TERM "$daemon"
read -r last <&3 || fail "the daemon did not print its result"
wait "$daemon" || fail "the daemon ended with $?"
case "$last" in "at the end: delivered "*", still queued 0") ;; *) fail "the daemon prints: $last" ;; esac
stored="$(sqlite3 -readonly "$COUNTERSIGN_DATA/events.sqlite" "SELECT count(*) FROM event WHERE user_id = 'host-1' AND name = 'load'")"
[ "$stored" -ge 5 ] || fail "only $stored readings were stored"
echo "examples: $stored readings of the daemon are stored with signed tokens"
