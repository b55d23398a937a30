#!/bin/sh
# Builds a package that depends on this one by URL and version, as apps do, with both build systems of SwiftPM: native and swiftbuild
# (Xcode's). Uses the source archive of a release (ARCHIVE=path), or the working tree with uncommitted changes.
# usage: consumer-test.sh [native|swiftbuild]...
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- native swiftbuild

git rev-parse --git-dir >/dev/null 2>&1 || {
    echo "consumer: skipped, this is not a git checkout" >&2
    exit 0
}

# Consumers do not set the variable that makes warnings errors.
unset COUNTERSIGN_STRICT
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/countersign" "$folder/app"
version="$(sed -n 's/.*countersignVersion = "\(.*\)"/\1/p' Sources/SDK/CountersignCore/Version.swift)"
if [ -n "${ARCHIVE:-}" ]; then
    tar -xzf "$ARCHIVE" --strip-components=1 -C "$folder/countersign"
else
    git ls-files --cached --others --exclude-standard | while read -r file; do
        [ ! -e "$file" ] || printf '%s\n' "$file"
    done | tar -cf - -T - | tar -xf - -C "$folder/countersign"
fi
git -C "$folder/countersign" init -q
git -C "$folder/countersign" add -A
git -C "$folder/countersign" -c user.name=test -c user.email=test@example.com commit -q -m "a release"
git -C "$folder/countersign" tag "$version"
git clone -q --bare "$folder/countersign" "$folder/countersign.git"

cat >"$folder/app/Package.swift" <<END
// swift-tools-version: 6.0
import PackageDescription

let package = Package(
    name: "app", platforms: [.macOS(.v13), .iOS(.v15)],
    dependencies: [.package(url: "file://$folder/countersign.git", from: "$version")],
    targets: [
        .executableTarget(
            name: "App",
            dependencies: [
                .product(name: "Countersign", package: "countersign"),
                .product(name: "CountersignLocations", package: "countersign"),
            ])
    ])
END
mkdir -p "$folder/app/Sources/App"
cat >"$folder/app/Sources/App/App.swift" <<'END'
import Countersign
import CountersignLocations
import Foundation

@main struct App {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = CountersignConfiguration(
            endpoint: URL(string: "http://127.0.0.1:9")!, writeKey: "wk_consumer")
        configuration.dataDirectory = folder
        configuration.flushPolicy = .manual
        let client = try CountersignClient(configuration: configuration)
        client.track("Order Completed", properties: ["total": 42.5])
        // No server listens at the endpoint, so the event stays queued.
        let result = await client.flush()
        await client.close()
        print("waiting:", result.queued, Location(latitude: 46, longitude: 14, timestamp: Date()).latitude)
    }
}
END
for system in "$@"; do
    # Without SwiftPM's shared cache, because this package is fetched once.
    build="swift build --package-path $folder/app --build-system $system --scratch-path $folder/$system"
    for attempt in 1 2; do
        status=0
        $build --disable-dependency-cache --product App >"$folder/log" 2>&1 || status=$?
        # Retries once if the build system fails without naming an error.
        if [ "$status" -eq 0 ] || grep -q 'error:' "$folder/log"; then break; fi
        printf 'consumer: attempt %s with %s ended with %s:\n' "$attempt" "$system" "$status" >&2
        tail -n 5 "$folder/log" >&2
    done
    if [ "$status" -ne 0 ]; then
        if grep -q 'error:' "$folder/log"; then grep 'error:' "$folder/log" | sort -u; else cat "$folder/log"; fi >&2
        echo "consumer: a package that adds this one by URL does not build with $system" >&2
        exit 1
    fi
    # An app must build no target of the gateway.
    strange="$(find "$folder/$system" \( -path "*CountersignGateway*" -o -path "*/Gateway[A-Z]*" \) -name "*.o" | head -n 1)"
    [ -z "$strange" ] || { echo "consumer: $system builds $strange of the gateway for an app that uses the SDK" >&2; exit 1; }
    said="$("$($build --show-bin-path)/App")" || said="it ended with $?"
    case "$said" in "waiting: 1 "*) ;; *) echo "consumer: built with $system, the app prints: $said" >&2; exit 1 ;; esac
    echo "consumer: an app that depends on this package by URL builds with $system, and runs"
done
