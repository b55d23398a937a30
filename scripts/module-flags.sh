#!/bin/sh
# Prints the compiler flags with which swiftc finds the modules of the debug build.
set -eu
cd "$(dirname "$0")/.."
# Absolute paths, because the compiler's module cache rejects a module that was cached under another path.
printf '%s\n' -I "$PWD/.build/debug/Modules"
for map in $(find "$PWD/Sources" -name module.modulemap); do printf '%s\n' -I "$(dirname "$map")"; done
for map in "$PWD"/.build/debug/C*.build/module.modulemap; do printf '%s\n' -Xcc "-fmodule-map-file=$map"; done
# libpq's header is not in the compiler's default search path.
pkg-config --cflags-only-I libpq
