#!/bin/sh
# Checks the metrics of a running gateway with Prometheus' own linter.
set -eu
cd "$(dirname "$0")/.."

if ! command -v promtool >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || { echo "metrics-test: there is no promtool on PATH; install Prometheus" >&2; exit 1; }
    # The package also brings a server, which nobody wants to be started here.
    folder="$(mktemp -d)"
    (cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb .)
    PATH="$folder/usr/bin:$PATH"
fi

swift build --product countersign
countersign="$PWD/.build/debug/countersign"
data="$(mktemp -d)"
trap 'kill "$gateway" 2>/dev/null || true; rm -rf "$data" "${folder:-}"' EXIT
chmod 700 "$data"
key="$("$countersign" app create shop --data "$data" 2>/dev/null)"
"$countersign" enforcement set shop optional --data "$data" 2>/dev/null
mkfifo "$data/url"
"$countersign" serve --data "$data" --port 0 >"$data/url" 2>"$data/log" &
gateway=$!
read -r url <"$data/url"

# One request of each kind, so that every metric has samples.
event='{"type":"track","event":"Seen","messageId":"m-1","userId":"u-1"}'
for body in "{\"batch\":[$event]}" "{\"batch\":[$event,{\"type\":\"no\"}]}" '{'; do
    curl -sS -o /dev/null -u "$key:" -d "$body" "$url/v1/batch"
done
curl -sS -o /dev/null "$url/no/such/path"
metrics="$(curl -sS "$url/metrics")"
for name in requests_total auth_results_total events_total request_duration_seconds batch_events \
    commit_duration_seconds store_queue_depth store_bytes disk_free_bytes build_info; do
    case "$metrics" in
    *"# TYPE countersign_$name "*) ;;
    *) echo "metrics-test: countersign_$name is missing" >&2; exit 1 ;;
    esac
done
said="$(printf '%s\n' "$metrics" | promtool check metrics 2>&1)" || { echo "$said" >&2; exit 1; }
[ -z "$said" ] || { echo "metrics-test: promtool says: $said" >&2; exit 1; }
# The linter must be able to complain.
if printf '# TYPE bad_ms counter\nbad_ms 1\n' | promtool check metrics >/dev/null 2>&1; then
    echo "metrics-test: promtool takes anything" >&2
    exit 1
fi
echo "metrics-test: $(printf '%s\n' "$metrics" | grep -c '^# TYPE') metrics, promtool is silent"
