#!/bin/sh
# Checks the browser client in Clients/web: its types, its size, and the tests that need no browser. Also tests the time axis of the
# dashboard's charts. `python3 -m tools web` tests the client in Chromium.
#
#   scripts/web.sh [--accept]
#
# With --accept the declarations in Clients/web/types and the file that gateways serve are rewritten.
set -eu
cd "$(dirname "$0")/.."
client=Clients/web
# The highest allowed size of the client, minified and compressed with gzip: 13.5 KiB.
limit=13824

skip() {
    printf 'web: skipped, %s\n' "$1" >&2
    exit 0
}

fail() {
    printf 'web: %s\n' "$1" >&2
    exit 1
}

said="$(scripts/setup.sh web 2>&1)" || skip "the packages of setup.sh web cannot be installed ($(printf '%s\n' "$said" | tail -n 1))"

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/types"
tsc --project $client --outDir "$folder/all"
# The public declarations; the other files are internal.
for file in index client braze; do cp "$folder/all/$file.d.ts" "$folder/types/"; done
# src/types.d.ts is written by hand.
printf "export * from '../src/types.js';\n" >"$folder/types/types.d.ts"
accepts=no
if [ "${1:-}" = --accept ]; then
    shift
    accepts=yes
    rm -rf $client/types
    cp -R "$folder/types" $client/types
fi
diff -r "$folder/types" $client/types || fail "$client/types is out of date: scripts/web.sh --accept"

# Names of internal properties, which the minifier may shorten. No browser API, gateway, stored event or other tab uses them.
internal="$(paste -sd '|' $client/internal-names.txt)"
esbuild --bundle --minify --format=esm --target=es2022 --mangle-props="^($internal)\$" $client/src/index.js \
    --outfile="$folder/bundle.js" --log-level=error
# The file that gateways serve.
served=Sources/CShims/CDashboard/Resources/countersign.js
[ "$accepts" = no ] || cp "$folder/bundle.js" $served
cmp -s "$folder/bundle.js" $served || fail "$served is out of date: scripts/web.sh --accept"
size="$(gzip -9 -n -c "$folder/bundle.js" | wc -c)"
[ "$size" -le "$limit" ] || fail "the client has $size bytes, minified and compressed; $limit are allowed"

node --test $client/test/*.test.js Tests/Dashboard/*.test.mjs >"$folder/tests" 2>&1 || {
    grep -vE '^( *(---|\.\.\.|duration_ms.*)|# Subtest.*|ok .*)$' "$folder/tests" >&2
    fail "a test failed"
}
# A wrong name in internal-names.txt breaks only the minified file, so the tests also run against that file.
mkdir "$folder/Clients"
cp -R $client "$folder/Clients/web"
cp "$folder/bundle.js" "$folder/Clients/web/src/index.js"
ln -s "$PWD/Conformance" "$folder/Conformance"
COUNTERSIGN_CONFORMANCE_REPORT='' node --test "$folder/Clients/web/test/conformance.test.js" \
    "$folder/Clients/web/test/values.test.js" >"$folder/tests-of-bundle" 2>&1 || {
    grep -E '^not ok|error:' "$folder/tests-of-bundle" >&2
    fail "a test of the minified client failed"
}
printf 'web: types agree, %s of %s bytes, %s tests passed\n' "$size" "$limit" "$(sed -n 's/^[#ℹ] pass //p' "$folder/tests")"

tsc --noEmit --strict --target es2022 --lib es2022,dom --module nodenext --moduleResolution nodenext $client/test/consumer.ts
