#!/bin/sh
# Installs missing system packages that building, testing and the demo need.
# Running it again is fast and changes nothing. An argument adds the packages for a part: bench, cluster (several gateways), browser
# (the dashboard's tests), screenshots, web (the browser client), jvm, release, venv.
set -eu

minimum_major=6
minimum_minor=3

fail() {
    printf 'setup: %s\n' "$1" >&2
    exit 1
}

# The missing packages, for each system's package manager.
missing_apt=""
missing_brew=""

# need CHECK APT BREW: if the command CHECK fails, adds the packages APT and, for macOS, BREW. With BREW - macOS gets no package.
need() {
    if ! sh -c "$1" >/dev/null 2>&1; then
        missing_apt="$missing_apt $2"
        [ "$3" = - ] || missing_brew="$missing_brew $3"
    fi
}

# Homebrew does not link these libraries into its default search path.
if [ "$(uname -s)" = Darwin ] && command -v brew >/dev/null 2>&1; then
    for formula in openssl@3 curl zlib; do
        directory="$(brew --prefix)/opt/$formula/lib/pkgconfig"
        PKG_CONFIG_PATH="$directory${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
    done
    export PKG_CONFIG_PATH
fi

swift_path="$(command -v swift || true)"
toolchain="$(dirname "$(readlink -f "${swift_path:-/nowhere}")")"

# Prints a command that checks whether the toolchain's clang finds the headers of the C++ standard library.
cxx_check() {
    clang="$toolchain/clang++"
    [ -x "$clang" ] || clang=c++
    printf "echo '#include <cstddef>' | '%s' -x c++ -E -" "$clang"
}

need "command -v pkg-config" pkg-config pkgconf
need "test $(uname -s) = Darwin || pkg-config --exists sqlite3" libsqlite3-dev -
need "pkg-config --exists openssl" libssl-dev openssl@3
need "pkg-config --exists libcurl" libcurl4-openssl-dev curl
need "pkg-config --exists zlib" zlib1g-dev zlib
need "pkg-config --exists simdjson" libsimdjson-dev simdjson
need "pkg-config --exists libqrencode" libqrencode-dev qrencode
need "pkg-config --exists libzstd" libzstd-dev zstd
if [ "${COUNTERSIGN_NATS:-}" = 1 ]; then need "pkg-config --exists libnats" libnats-dev cnats; fi
if [ "${COUNTERSIGN_POSTGRESQL:-1}" != 0 ]; then
    need "pkg-config --exists libpq" libpq-dev libpq
    # For tests, which start a temporary server (scripts/postgresql.sh).
    need "ls /usr/lib/postgresql/*/bin/initdb || command -v initdb" postgresql postgresql
fi
need "command -v zstd" zstd zstd
need "command -v sqlite3" sqlite3 sqlite
need "command -v openssl" openssl openssl@3
need "command -v curl" curl curl
# For tests of the completion scripts.
need "command -v zsh" zsh zsh
need "command -v fish" fish fish
# The toolchain calls git to read package manifests.
need "command -v git" git git
# scripts/test.sh uses pgrep to find the child processes of a test that never ends.
need "command -v pgrep" procps -
case "${1:-}" in
bench)
    need "command -v wrk" wrk wrk
    need "command -v gnuplot" gnuplot-nox gnuplot
    need "command -v faketime" faketime libfaketime
    need "PATH=\$PATH:/usr/sbin command -v haproxy" haproxy haproxy
    ;;
cluster)
    need "PATH=\$PATH:/usr/sbin command -v haproxy" haproxy haproxy
    need "PATH=\$PATH:/usr/sbin command -v pgbouncer" pgbouncer pgbouncer
    need "test $(uname -s) = Darwin || ls /usr/lib/*/faketime/libfaketimeMT.so.1" libfaketime -
    need "test $(uname -s) = Darwin || command -v ip" iproute2 -
    ;;
browser) need "command -v chromium || command -v chromium-browser" "chromium fonts-inter" - ;;
web)
    need "command -v node" nodejs node
    need "command -v tsc" node-typescript typescript
    need "command -v esbuild" esbuild esbuild
    ;;
jvm)
    need "command -v javac" openjdk-17-jdk-headless openjdk@17
    need "command -v kotlinc" kotlin kotlin
    ;;
release)
    for program in buildah debootstrap lintian mmdebstrap; do need "PATH=\$PATH:/usr/sbin command -v $program" $program -; done
    need "command -v dpkg-shlibdeps" dpkg-dev -
    need "command -v npm" npm node
    need "command -v javac" openjdk-17-jdk-headless openjdk@17
    need "python3 -c 'import venv, ensurepip'" python3-venv -
    ;;
screenshots) need "ls /usr/lib/*/faketime/libfaketimeMT.so.1" libfaketime - ;;
esac
case "${1:-}" in browser | venv) need "python3 -c 'import venv, ensurepip'" python3-venv - ;; esac
need "$(cxx_check)" "g++ libc6-dev" -
if [ "$(uname -s)" = Linux ] && [ -x "$toolchain/swift-build" ]; then
    # Libraries that the programs of an unpacked toolchain load.
    need "! ldd '$toolchain/swift-build' | grep 'not found'" "libncurses6 libxml2" -
    need "test -e /usr/share/zoneinfo/UTC" tzdata -
fi

if [ -n "$missing_apt" ]; then
    case "$(uname -s)" in
    Darwin)
        command -v brew >/dev/null 2>&1 ||
            fail "Homebrew is missing; install it, or these libraries by hand:$missing_brew"
        # shellcheck disable=SC2086 # a list of packages
        [ -z "$missing_brew" ] || brew install $missing_brew
        ;;
    *)
        command -v apt-get >/dev/null 2>&1 ||
            fail "this system has no apt-get; install the contents of these Debian packages, then run again:$missing_apt"
        as_root=""
        if [ "$(id -u)" -ne 0 ]; then
            command -v sudo >/dev/null 2>&1 ||
                fail "root is needed, and there is no sudo; run as root: apt-get install$missing_apt"
            as_root="sudo"
        fi
        printf 'setup: installing%s\n' "$missing_apt" >&2
        # apt-get fails while another one runs, and checks run this script in parallel.
        $as_root flock -o "$0" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
        # shellcheck disable=SC2086 # a list of packages
        $as_root flock -o "$0" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing_apt
        ;;
    esac
fi

command -v swift >/dev/null 2>&1 ||
    fail "there is no swift on PATH; install a Swift toolchain of version $minimum_major.$minimum_minor or newer"
version="$(swift --version 2>&1 | sed -n 's/.*Swift version \([0-9][0-9]*\.[0-9][0-9]*\).*/\1/p' | head -n 1)"
[ -n "$version" ] || fail "swift --version has no version: $(swift --version 2>&1 | head -n 3)"
major="${version%%.*}"
minor="${version#*.}"
if [ "$major" -lt "$minimum_major" ] || { [ "$major" -eq "$minimum_major" ] && [ "$minor" -lt "$minimum_minor" ]; }; then
    fail "Swift $version is too old; $minimum_major.$minimum_minor or newer is needed"
fi
