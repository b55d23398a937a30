#!/bin/sh
# Builds the documentation of the libraries with docc from the toolchain, into .build/docs. A warning is an error.
# Then compares their public API with docs/api.
set -eu
cd "$(dirname "$0")/.."

docc="$(dirname "$(readlink -f "$(command -v swift)")")/docc"
[ -x "$docc" ] || docc="$(command -v docc || xcrun --find docc 2>/dev/null)" || {
    echo "docs: skipped, this toolchain has no docc" >&2
    exit 0
}
swift build
target="$(swift -print-target-info | sed -n 's/.*"unversionedTriple": "\(.*\)".*/\1/p' | head -n 1)"
[ "$(uname -s)" != Darwin ] || target="$(uname -m)-apple-macosx13.0"
folder=.build/docs
rm -rf "$folder"
mkdir -p "$folder"

symbols() {
    mkdir -p "$folder/symbols/$1"
    set -- "$1" -module-name "$1" -target "$target" -minimum-access-level public \
        -output-dir "$folder/symbols/$1"
    # Public types of re-exported targets are part of the library, without Foundation's, which Apple documents.
    modules="$(sed -n '/Foundation/!s/^@_exported public import //p' "$(dirname "$catalog")"/*.swift | paste -sd, -)"
    [ -z "$modules" ] || set -- "$@" -experimental-allowed-reexported-modules="$modules"
    # shellcheck disable=SC2046
    set -- "$@" $(scripts/module-flags.sh)
    [ "$(uname -s)" != Darwin ] || set -- "$@" -sdk "$(xcrun --show-sdk-path)"
    shift
    swift symbolgraph-extract "$@"
}
convert() {
    "$docc" convert "$2" --additional-symbol-graph-dir "$folder/symbols/$1" --output-path "$folder/$1.doccarchive" \
        --fallback-display-name "$1" --fallback-bundle-identifier "countersign.$1" --warnings-as-errors &&
        # Each page requests this file.
        printf '{}\n' >"$folder/$1.doccarchive/theme-settings.json"
}

# Builds the catalogs with an even number (0) or an odd one (1). Two jobs run in parallel, because each uses one core.
every_second() {
    number=0
    for catalog in Sources/*/*.docc Sources/*/*/*.docc; do
        [ -d "$catalog" ] || continue
        number=$((number + 1))
        [ $((number % 2)) -eq "$1" ] || continue
        module="$(basename "$catalog" .docc)"
        symbols "$module"
        convert "$module" "$catalog"
        echo "docs: $module, $(find "$catalog" -name '*.md' | wc -l | tr -d ' ') pages"
    done
}
every_second 1 &
others=$!
every_second 0
wait "$others"
# CountersignCore has no catalog. Its symbols are extracted for the comparison below.
catalog=Sources/SDK/CountersignCore/none
symbols CountersignCore

# Checks that docc rejects a broken link.
cp -r Sources/SDK/Countersign/Countersign.docc "$folder/Wrong.docc"
printf '\nSee ``NoSuchSymbol``.\n' >>"$folder/Wrong.docc/QuickStart.md"
if convert Countersign "$folder/Wrong.docc" >/dev/null 2>&1; then
    echo "docs: docc accepts a broken link" >&2
    exit 1
fi
rm -rf "$folder/Wrong.docc"

scripts/public-api.py "$folder/symbols"
