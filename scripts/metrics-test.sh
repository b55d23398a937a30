#!/bin/sh
# Checks the metrics of a running gateway with Prometheus' own linter, its alerts with promtool, and lets a real
# Prometheus scrape it and answer every query of the Grafana dashboard.
set -eu
cd "$(dirname "$0")/.."

if ! command -v promtool >/dev/null 2>&1 || ! command -v prometheus >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || { echo "metrics-test: there is no promtool on PATH; install Prometheus" >&2; exit 1; }
    # The package also brings a server, which nobody wants to be started here.
    folder="$(mktemp -d)"
    (cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb .)
    PATH="$folder/usr/bin:$PATH"
fi

swift build --product countersign-cli
countersign="$PWD/.build/debug/countersign-cli"
data="$(mktemp -d)"
prometheus=""
trap 'kill "$gateway" $prometheus 2>/dev/null || true; rm -rf "$data" "${folder:-}"' EXIT
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

# The alerts are raised when they should be, and only then; and the test of that can fail.
promtool check config packaging/prometheus/prometheus.yml >/dev/null
for test in alerts slo; do
    promtool test rules "packaging/prometheus/$test.test.yml" >"$data/said" 2>&1 || { cat "$data/said" >&2; exit 1; }
done
mkdir "$data/rules"
sed 's/> 33554432/> 99999999999/' packaging/prometheus/alerts.yml >"$data/rules/alerts.yml"
cp packaging/prometheus/alerts.test.yml "$data/rules/"
if promtool test rules "$data/rules/alerts.test.yml" >/dev/null 2>&1; then
    echo "metrics-test: an alert that never fires passed" >&2
    exit 1
fi
sed 's/vector(0.001)/vector(0.1)/' packaging/prometheus/slo.yml >"$data/rules/slo.yml"
cp packaging/prometheus/slo.test.yml "$data/rules/"
if promtool test rules "$data/rules/slo.test.yml" >/dev/null 2>&1; then
    echo "metrics-test: a budget that nothing can burn passed" >&2
    exit 1
fi

# A real Prometheus with the shipped configuration; only the port and the pace differ.
port="$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')"
cp packaging/prometheus/alerts.yml packaging/prometheus/slo.yml "$data/"
sed -e "s#127.0.0.1:8787#${url#http://}#" -e 's/: 15s/: 1s/' packaging/prometheus/prometheus.yml >"$data/prometheus.yml"
prometheus --config.file="$data/prometheus.yml" --storage.tsdb.path="$data/tsdb" --web.listen-address="127.0.0.1:$port" \
    >"$data/prometheus.log" 2>&1 &
prometheus=$!
query() {
    curl -sS --get "http://127.0.0.1:$port/api/v1/query" --data-urlencode "query=$1"
}
for _ in $(seq 60); do
    # Rates need several scrapes, between which something has happened.
    curl -sS -o /dev/null -u "$key:" -d "{\"batch\":[$event]}" "$url/v1/batch"
    case "$(query 'count_over_time(up{job="countersign"}[1m]) > 5' 2>/dev/null)" in *'"instance"'*) break ;; esac
    sleep 1
done
queries=0
python3 - >"$data/queries" <<'P'
import json

for panel in json.load(open("packaging/grafana-dashboard.json"))["panels"]:
    for target in panel["targets"]:
        print(target["expr"].replace("$__rate_interval", "1m").replace("$app", ".*").replace("$route", ".*"))
P
while IFS= read -r expression; do
    queries=$((queries + 1))
    case "$(query "$expression")" in
    *'"status":"success"'*'"value":'*) ;;
    *) echo "metrics-test: no answer to the dashboard's $expression: $(query "$expression")" >&2; exit 1 ;;
    esac
done <"$data/queries"
[ "$queries" -ge 20 ] || { echo "metrics-test: the dashboard has only $queries queries" >&2; exit 1; }
case "$(query countersign_no_such_metric)" in *'"value":'*) echo "metrics-test: anything is answered" >&2; exit 1 ;; esac

echo "metrics-test: $queries queries of the dashboard are answered, the alerts hold"
echo "metrics-test: $(printf '%s\n' "$metrics" | grep -c '^# TYPE') metrics, promtool is silent"
