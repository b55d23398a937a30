#!/bin/sh
# Type-checks the packages Fuzzing, Benchmarks and Torture, which other checks do not build.
set -eu
cd "$(dirname "$0")/.."
swift build
for sources in Fuzzing/Sources/* Benchmarks/Sources/* Torture/Sources/*; do
    ls "$sources"/*.swift >/dev/null 2>&1 || continue
    # shellcheck disable=SC2046
    swiftc -typecheck -swift-version 6 -parse-as-library $(scripts/module-flags.sh) -I Benchmarks/Sources/CEVP \
        -I Torture/Sources/CSQLite3 "$sources"/*.swift
    echo "packages-check: $sources"
done
