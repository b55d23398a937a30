#!/bin/sh
# Prints the compiler flags that find the modules of the debug build.
set -eu
cd "$(dirname "$0")/.."
# Absolute, because the compiler's cache rejects a module that another call named by another path.
printf '%s\n' -I "$PWD/.build/debug/Modules"
for map in $(find "$PWD/Sources" -name module.modulemap); do printf '%s\n' -I "$(dirname "$map")"; done
for map in "$PWD"/.build/debug/C*.build/module.modulemap; do printf '%s\n' -Xcc "-fmodule-map-file=$map"; done
# The header of this library is in a folder of its own.
pkg-config --cflags-only-I libpq
