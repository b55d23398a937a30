#!/bin/sh
# Checks BrazeCompat's Objective-C interface, and Braze's samples in Objective-C. swiftc checks the @objc classes and
# generates the header that apps import. clang checks the samples against that header. Tests/Apple/objc declares
# NSObject, NSString and so on. Nothing is linked or run, because Swift has no Objective-C runtime on Linux.
set -eu
cd "$(dirname "$0")/.."

[ "$(uname -s)" = Linux ] || {
    echo "objc: skipped, on macOS each build checks @objc" >&2
    exit 0
}
checked=Tests/Apple/objc
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT

compile() {
    swiftc -frontend "$@" -enable-objc-interop -parse-as-library -swift-version 6 \
        -warnings-as-errors -I "$checked/include/ObjectiveC" -I "$checked/include/Foundation" -I "$folder" \
        -Xcc "-I$checked/include" -module-cache-path "$folder/cache"
}
compile -emit-module -module-name Foundation -import-underlying-module -o "$folder/Foundation.swiftmodule" "$checked/Foundation.swift"
compile -typecheck -module-name BrazeCompat -enable-upcoming-feature ExistentialAny \
    -enable-upcoming-feature InternalImportsByDefault -enable-upcoming-feature MemberImportVisibility \
    -emit-objc-header-path "$folder/BrazeCompat-Swift.h" "$checked/Braze.swift" "Sources/SDK/BrazeCompat/Braze+ObjectiveC.swift"
"$(dirname "$(readlink -f "$(command -v swift)")")/clang" -fsyntax-only -fobjc-runtime=ios-15.0 \
    -fobjc-arc -fmodules "-fmodules-cache-path=$folder/cache" "-I$checked/include" "-I$folder" \
    -Wall -Wextra -Werror -Wno-unused-parameter "$checked/samples.m"
echo "objc: the façade and the vendor's samples compile"
