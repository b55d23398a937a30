#!/bin/sh
# Type-checks the SDK, its samples and the SwiftUI example for Apple's systems on Linux, against declarations of Apple's frameworks
# (Tests/Apple) and the toolchain's standard library with its availability. Checks availability, isolation, imports and signatures,
# as far as the declarations are right, and runs nothing. Add missing declarations to Tests/Apple/stubs, with Apple's availability
# and isolation.
# usage: apple-check.sh [ios15.0|macosx13.0]...
set -eu
cd "$(dirname "$0")/.."
[ "$(uname -s)" = Linux ] || {
    echo "apple: skipped, on macOS the compiler has Apple's own frameworks" >&2
    exit 0
}
[ $# -gt 0 ] || set -- ios15.0 macosx13.0

folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
resources="$(dirname "$(dirname "$(readlink -f "$(command -v swift)")")")/lib/swift"
sdk="$folder/sdk"
ios=arm64-apple-ios.swiftinterface

# Rewrites the standard library's interfaces of Linux for Apple's systems, for type-checking only.
for module in Swift _Concurrency Synchronization _StringProcessing SwiftOnoneSupport; do
    mkdir -p "$sdk/$module.swiftmodule"
    linux="$resources/linux/$module.swiftmodule/x86_64-unknown-linux-gnu.swiftinterface"
    if [ -e "$linux" ]; then
        sed -E -e 's/-target x86_64-unknown-linux-gnu/-target arm64-apple-ios12.2/' -e '/^import Glibc/d' "$linux" >"$sdk/$module.swiftmodule/$ios"
    else
        printf '%s\n' '// swift-interface-format-version: 1.0' "$(sed -n 2p "$sdk/Swift.swiftmodule/$ios")" \
            "// swift-module-flags: -target arm64-apple-ios12.2 -disable-objc-interop -enable-library-evolution -swift-version 5 -module-name $module" \
            'import Swift' >"$sdk/$module.swiftmodule/$ios"
    fi
done
sed -i -e '/^@backDeployed(before: macOS 14.0, iOS 17.0, watchOS 10.0, tvOS 17.0)$/{N;N;s/^@backDeployed[^\n]*\n//}' \
    -e 's/^    self = _stdlib_remainderl(self, other)$/    fatalError()/' -e 's/^    self = _stdlib_squareRootl(self)$/    fatalError()/' \
    "$sdk/Swift.swiftmodule/$ios"
for module in _Concurrency Synchronization _StringProcessing; do
    sed -i -E -e 's/-target arm64-apple-ios12.2/& -disable-availability-checking/' -e 's/-target-min-inlining-version min//' \
        -e 's/-library-level api//' -e 's/-enable-library-evolution//' -e '/^ *@backDeployed\([^)]*\)$/d' \
        -e 's/^( *)@backDeployed\([^)]*\) /\1/' -e 's/_swift_stdlib_gettid\(\)/UInt32(0)/' "$sdk/$module.swiftmodule/$ios"
done
for interface in "$sdk"/*/"$ios"; do
    sed 's/-target arm64-apple-ios12.2/-target arm64-apple-macosx10.14.4/' "$interface" >"${interface%ios.swiftinterface}macos.swiftinterface"
done

# A copy of the project in which samples and the example app are modules too.
modules="CountersignCore CountersignSQLite CountersignTransport CountersignDelivery Countersign CountersignBloomreach CountersignLocations
BrazeCompat BackgroundGeolocationCompat ExponeaCompat CountersignTesting CountersignC CountersignConsumer"
sources="$folder/sources"
mkdir "$sources"
for module in $modules; do cp -r "Sources/SDK/$module" "$sources/"; done
# The compiler on Linux has no Objective-C, so `@objc` is removed and the files are checked with the rest of the module.
for file in "$sources"/*/*+ObjectiveC.swift; do
    sed -i -e 's/canImport(ObjectiveC)/true/' -e 's/@objc([^)]*) *//' -e 's/@objc //' "$file"
done
for sample in Snippets/*.swift; do
    # Skips samples for servers.
    ! grep -qE '^import Countersign(Gateway|JOSE)$' "$sample" || continue
    module="Sample$(basename "$sample" .swift)"
    mkdir "$sources/$module"
    # The statements at the end of a sample become a function, because files of a module have only declarations.
    awk '/^(if|guard|let|var|for|do|try|print)/ && !body { body = 1; print "func run() async throws {" } { print } END { if (body) print "}" }' \
        "$sample" >"$sources/$module/$module.swift"
    modules="$modules $module"
done
mkdir "$sources/NotesApp"
for file in Examples/NotesApp/Sources/*.swift; do
    # Includes the previews, which are otherwise in debug builds only.
    sed 's/#if DEBUG/#if true/' "$file" >"$sources/NotesApp/$(basename "$file")"
done

# C modules: SQLite, zlib, and the header of `libcountersign`.
mkdir "$folder/c" "$folder/c/sqlite" "$folder/c/zlib"
cp Tests/Apple/sqlite-shim.h "$folder/c/sqlite/shim.h"
echo 'module CSQLite [system] { header "shim.h" export * }' >"$folder/c/sqlite/module.modulemap"
cp Tests/Apple/zlib-shim.h "$folder/c/zlib/shim.h"
echo 'module CZlib [system] { header "shim.h" export * }' >"$folder/c/zlib/module.modulemap"
cp -r Sources/SDK/CCountersign/include "$folder/c/CCountersign"
echo 'module CCountersign { header "countersign.h" export * }' >"$folder/c/CCountersign/module.modulemap"

check() {
    built="$folder/$1"
    mkdir "$built"
    compile="swiftc -frontend -target arm64-apple-$1 -sdk $sdk -I $sdk -I $built -I $folder/c/sqlite -I $folder/c/zlib -I $folder/c/CCountersign
        -resource-dir $resources -module-cache-path $built/cache -swift-version 6 -disable-objc-interop -parse-as-library
        -plugin-path $resources/host/plugins"
    for module in Darwin Dispatch os Foundation CryptoKit CoreLocation Security SwiftUI; do
        $compile -emit-module -module-name $module -suppress-warnings -experimental-skip-all-function-bodies -o "$built/$module.swiftmodule" \
            "Tests/Apple/stubs/$module.swift" 2>&1 | grep 'error:' || true
    done
    for module in $modules NotesApp; do
        flags="-package-name countersign -enable-upcoming-feature ExistentialAny -enable-upcoming-feature InternalImportsByDefault
            -enable-upcoming-feature MemberImportVisibility -module-name $module"
        # shellcheck disable=SC2046
        set -- $(find "$sources/$module" -name '*.swift')
        said="$($compile $flags -typecheck "$@" 2>&1 | grep -E '^[^ ].*(error|warning):' | sort -u | sed "s#$folder/##" || true)"
        if [ -n "$said" ]; then printf '%s:\n%s\n' "$module" "$said"; else echo "$module: good"; fi
        $compile $flags -emit-module -suppress-warnings -experimental-skip-all-function-bodies -o "$built/$module.swiftmodule" "$@" >/dev/null 2>&1 || true
    done
}
pids=""
for system in "$@"; do
    # shellcheck disable=SC2086 # lists of flags
    check "$system" >"$folder/$system.log" 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid"; done
status=0
for system in "$@"; do
    if grep -v ': good$' "$folder/$system.log"; then status=1; fi
    echo "apple: $(grep -c ': good$' "$folder/$system.log") modules compile for $system"
done
exit $status
