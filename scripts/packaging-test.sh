#!/bin/sh
# Checks packaging/countersign.service and packaging/Containerfile with the installed systemd and the built program.
# Skips the parts that need a missing program (systemd, dpkg).
set -eu
cd "$(dirname "$0")/.."

swift build --product countersign-cli
countersign="$PWD/.build/debug/countersign-cli"
folder="$(mktemp -d)"
trap 'rm -rf "$folder"' EXIT
fail() {
    printf 'packaging-test: %s\n' "$1" >&2
    exit 1
}

if command -v systemd-analyze >/dev/null 2>&1; then
    sed "s#/usr/local/bin/countersign#$countersign#" packaging/countersign.service >"$folder/countersign.service"
    said="$(systemd-analyze verify "$folder/countersign.service" 2>&1)" || fail "systemd-analyze reports: $said"
    [ -z "$said" ] || fail "systemd-analyze reports: $said"
    # The highest allowed exposure is 1.5. An exposure of 10 is a service without any protection.
    systemd-analyze security --offline=true --threshold=15 --no-pager "$folder/countersign.service" >"$folder/said" 2>&1 ||
        fail "the unit's exposure is above 1.5: $(tail -n 1 "$folder/said")"
    # Checks that systemd-analyze rejects an invalid unit.
    sed 's/^Type=exec/Typ=exec/' "$folder/countersign.service" >"$folder/wrong.service"
    [ -n "$(systemd-analyze verify "$folder/wrong.service" 2>&1)" ] || fail "systemd-analyze accepts an invalid unit"
    echo "packaging-test: the unit is valid; $(tail -n 1 "$folder/said" | sed 's/.*: \([0-9.]*\) .*/exposure \1 of 10/')"
else
    echo "packaging-test: no systemd-analyze here; the unit is not checked"
fi

# Each variable in the unit, in the package's configuration and in the image must be a setting of the program.
for variable in $(grep -hoE 'COUNTERSIGN_[A-Z_]+' packaging/countersign.service packaging/debian/countersign.conf packaging/Containerfile | sort -u); do
    grep -q "\`$variable\`" docs/reference/settings.md || fail "$variable is not a setting"
done

# The image must copy all files that the build needs. SwiftPM checks its targets when it plans the build, without
# building. The compiler checks the embedded files.
mkdir "$folder/source"
for path in $(sed -n 's/^COPY \([^-][^ ]*\) .*/\1/p' packaging/Containerfile); do cp -r "$path" "$folder/source/"; done
said="$(swift build --package-path "$folder/source" --product countersign-cli --print-manifest-job-graph 2>&1)" ||
    fail "the files that the image copies cannot be built: $(printf '%s' "$said" | head -n 3)"
said="$(clang -std=c23 -fsyntax-only -I Sources/CShims/CDashboard/include "$folder/source/Sources/CShims/CDashboard/dashboard_files.c" 2>&1)" ||
    fail "the image lacks a file that the dashboard embeds: $(printf '%s' "$said" | head -n 3)"

# The image must install exactly the packages whose libraries the program loads.
if command -v dpkg >/dev/null 2>&1 && command -v objdump >/dev/null 2>&1; then
    installed="$(sed -n '/bookworm-slim/,$p' packaging/Containerfile | grep -oE '(^| )(lib[a-z0-9+.-]+|zlib1g)' | tr -d ' ' | sort -u)"
    for library in $(objdump -p "$countersign" | awk '/NEEDED/ {print $2}'); do
        path="$(ldconfig -p | awk -v l="$library" '$1 == l {print $NF; exit}')"
        # Skips Swift's own libraries: the image's build links them statically (--static-swift-stdlib).
        [ -n "$path" ] || continue
        package="$(dpkg -S "$(readlink -f "$path")" 2>/dev/null | cut -d: -f1 | head -n 1)"
        [ -n "$package" ] || package="$(dpkg -S "$path" | cut -d: -f1 | head -n 1)"
        case "$package" in libc6 | libgcc-s1) continue ;; esac
        echo "$installed" | grep -qx "$package" || fail "the program loads $library of $package, which the image does not install"
        echo "$package" >>"$folder/loaded"
    done
    # The release program needs libxml2 for Foundation; the debug program loads it through Swift's libraries.
    echo libxml2 >>"$folder/loaded"
    for package in $installed; do
        grep -qx "$package" "$folder/loaded" || fail "the image installs $package, which the program does not load"
    done
    echo "packaging-test: the image has the $(sort -u "$folder/loaded" | wc -l) packages that the program loads"
fi
