#!/bin/sh
# Type-checks the SDK, its samples and the SwiftUI example for Apple's systems with the checker beside the checkout, which
# has declarations of Apple's frameworks. It runs nothing. Without the checker it says so and is skipped.
# usage: apple-check.sh [ios15.0|macosx13.0]...
set -eu
cd "$(dirname "$0")/.."

tools="${APPLE_CHECK:-../shared/tools}"
[ -x "$tools/apple-check/apple-check.sh" ] || {
    echo "apple: skipped, $tools has no apple-check" >&2
    exit 0
}
[ $# -gt 0 ] || set -- ios15.0 macosx13.0

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
# A copy of the checker, with the declarations that it lacks: each file here is added to its file of the same name.
cp -r "$tools/apple-check" "$tools/ios-availability.sh" "$folder"
for stub in scripts/apple-stubs/*.swift; do
    [ ! -e "$stub" ] || cat "$stub" >>"$folder/apple-check/stubs/$(basename "$stub")"
done

# Modules that the checker knows nothing of.
checker="$folder/apple-check/apple-check.sh"
sed -i 's/for m in Darwin Dispatch Foundation /for m in Darwin Dispatch os Foundation CryptoKit /' "$checker"
grep -q ' Dispatch os Foundation CryptoKit ' "$checker" || {
    echo "apple: the checker is another one than this script knows" >&2
    exit 1
}

cat scripts/apple-stubs/sqlite-shim.h >>"$folder/apple-check/sqlite-shim.h"

# A project that has samples and example as modules, too.
sdk="CountersignCore CountersignSQLite CountersignTransport CountersignDelivery Countersign CountersignBloomreach CountersignLocations
BrazeCompat BackgroundGeolocationCompat ExponeaCompat CountersignTesting CountersignC CountersignConsumer"
sources="$folder/project/Sources"
mkdir -p "$sources"
for module in $sdk; do
    folders="$(find Sources -maxdepth 2 -type d -name "$module")"
    cp -r "$folders" "$sources/"
done
# The checker leaves Objective-C out: its surface is checked without that word against the rest of the module.
for file in "$sources"/*/*+ObjectiveC.swift; do
    sed -i -e 's/canImport(ObjectiveC)/true/' -e 's/@objc([^)]*) *//' -e 's/@objc //' "$file"
done
samples=""
for sample in Snippets/*.swift; do
    # Those for servers.
    ! grep -qE '^import Countersign(Gateway|JOSE)$' "$sample" || continue
    module="Sample$(basename "$sample" .swift)"
    mkdir "$sources/$module"
    # What a sample does when it is run is the end of its file; a module has only declarations.
    awk '/^(if|guard|let|var|for|do|try|print)/ && !body { body = 1; print "func run() async throws {" } { print } END { if (body) print "}" }' \
        "$sample" >"$sources/$module/$module.swift"
    samples="$samples $module"
done
mkdir "$sources/NotesApp"
for file in Examples/NotesApp/Sources/*.swift; do
    # Its previews are in debug builds only.
    sed 's/#if DEBUG/#if true/' "$file" >"$sources/NotesApp/$(basename "$file")"
done

# The header of `libcountersign` is a module of its own.
cp -r Sources/SDK/CCountersign/include "$folder/CCountersign"
echo 'module CCountersign { header "countersign.h" export * }' >"$folder/CCountersign/module.modulemap"
export CPATH="$folder/CCountersign${CPATH:+:$CPATH}"
status=0
pids=""
for system in "$@"; do
    # shellcheck disable=SC2086 # lists of modules
    "$folder/apple-check/apple-check.sh" "$folder/project" "$system" $sdk $samples NotesApp >"$folder/$system.log" 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || status=1; done
for system in "$@"; do
    if grep -v ': good$' "$folder/$system.log"; then status=1; fi
    echo "apple: $(grep -c ': good$' "$folder/$system.log") modules are good for $system"
done
exit $status
