#!/bin/sh
# Checks the gateway's OpenAPI document and checks the running gateway against it, with openapi-spec-validator and
# Schemathesis from PyPI in a virtual environment (.venv/openapi). EXAMPLES sets how many requests each endpoint gets.
set -eu
cd "$(dirname "$0")/.."

venv=.venv/openapi
if [ ! -x "$venv/bin/st" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "schemathesis>=4,<5" openapi-spec-validator
fi

swift build --product countersign-cli
countersign="${COUNTERSIGN:-$PWD/.build/debug/countersign-cli}"
folder="$(mktemp -d)"
gateway=""
trap '[ -z "$gateway" ] || kill "$gateway" 2>/dev/null || true; rm -rf "$folder"' EXIT
key="$("$countersign" app create shop --data "$folder/data" 2>/dev/null)"
"$countersign" enforcement set shop optional --data "$folder/data" 2>/dev/null
mkfifo "$folder/url"
"$countersign" serve --data "$folder/data" --port 0 --log-level error >"$folder/url" 2>"$folder/log" &
gateway=$!
read -r url <"$folder/url"

curl -sSf "$url/openapi.json" >"$folder/openapi.json"
"$venv/bin/openapi-spec-validator" "$folder/openapi.json"

# positive_data_acceptance is out: what an event must hold depends on its kind and its neighbours, which no schema says.
# negative_data_rejection is out: a wrong event is rejected individually in a 200 answer, and the others are stored.
# ignored_auth is out: an app that is not enforced takes requests without a token.
run() {
    "$venv/bin/st" --no-color run "$folder/openapi.json" --url "$url" --phases examples,coverage,fuzzing \
        --max-examples "${EXAMPLES:-30}" --request-timeout 10 --suppress-health-check all --warnings off \
        --exclude-checks positive_data_acceptance,negative_data_rejection,ignored_auth "$@"
}
# Once as an app does, once as a stranger.
run -H "X-Write-Key: $key" -H "X-Braze-Api-Key: $key" --exclude-path-regex '^/(track|data|webxp|wxstatic|campaigns)/'
run
# Below the paths of projects only an existing one gets anywhere.
sed -i 's/"pattern":"^\[A-Za-z0-9_-\]{1,64}\$"/"enum":["shop"]/g' "$folder/openapi.json"
run -H "Authorization: Token $key" --include-path-regex '^/(track|data|webxp|wxstatic|campaigns)/'
# Answers that succeed must have been among them.
served="$(curl -sS "$url/metrics" | grep -c '^countersign_requests_total.*status="2xx"')"
[ "$served" -ge 20 ] || { echo "openapi-test: only $served endpoints ever succeeded" >&2; curl -sS "$url/metrics" | grep "^countersign_requests_total" >&2; exit 1; }

# What is checked must be able to fail: a document that promises another answer.
sed -i 's/"accepted","duplicates","rejected"/"accepted","never-there"/' "$folder/openapi.json"
if run -H "X-Write-Key: $key" --include-path /v1/batch >"$folder/said" 2>&1; then
    echo "openapi-test: a wrong document passed" >&2
    exit 1
fi

# The admin API, as an owner's program uses it. Last, because it changes what the others need; /live never ends.
admin="$("$countersign" admin token create --name openapi --scopes admin --data "$folder/data" 2>/dev/null)"
curl -sSf -H "Authorization: Bearer $admin" "$url/admin/api/openapi.json" >"$folder/admin.json"
"$venv/bin/openapi-spec-validator" "$folder/admin.json"
# Below /apps and /items only what exists gets anywhere.
python3 - "$folder/admin.json" <<'PYTHON'
import json, sys
document = json.load(open(sys.argv[1]))
kinds = ["in-app-message", "consent-category", "inbox-message"]
for path in document["paths"].values():
    for operation in path.values():
        for parameter in operation.get("parameters", []):
            if parameter["name"] == "app" and parameter["in"] == "path":
                parameter["schema"] = {"enum": ["shop"]}
            if parameter["name"] == "kind":
                parameter["schema"] = {"enum": kinds}
json.dump(document, open(sys.argv[1], "w"))
PYTHON
# A request whose If-Match is wrong is refused before its body is read (RFC 9110 13.2.2), and one without it with 428 (RFC 6585 3).
cat >"$folder/schemathesis.toml" <<'TOML'
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "412", "415", "422", "428", "429", "5xx"]
[checks.missing_required_header]
expected-statuses = ["400", "401", "403", "406", "415", "422", "428"]
TOML
# allow_header_conformance is out: /keys/import is a key's path too, for GET. positive_data_acceptance is out: what an id leads
# to, no schema says.
"$venv/bin/st" --no-color --config-file "$folder/schemathesis.toml" run "$folder/admin.json" --url "$url/admin/api" --phases examples,coverage,fuzzing \
    --max-examples "${EXAMPLES:-30}" --request-timeout 20 --suppress-health-check all --warnings off \
    --exclude-path /live --exclude-checks positive_data_acceptance,allow_header_conformance \
    -H "Authorization: Bearer $admin"
served="$(curl -sS "$url/metrics" | grep '^countersign_requests_total.*status="2xx"' | grep -c '/admin/api/')"
[ "$served" -ge 10 ] || { echo "openapi-test: only $served admin endpoints ever succeeded" >&2; exit 1; }

kill -0 "$gateway"
if [ -s "$folder/log" ] && grep -v '^Data:\|^Ready:\|^Apps:\|^Stop:\|^Next:' "$folder/log" | grep '"status":5'; then
    echo "openapi-test: the gateway logged failures of its own" >&2
    exit 1
fi
echo "openapi-test: the document is valid and the gateway keeps to it"
