#!/bin/sh
# Builds libcountersign into .build/libcountersign: the library under its versions' names, its header and a pkg-config file.
# On Linux Swift's runtime is in it, only the functions of the header can be seen, and they carry a version.
set -eu
cd "$(dirname "$0")/.."
version="$(sed -n 's/.*"\([0-9.]*\)".*/\1/p' Sources/SDK/CountersignCore/Version.swift | head -n 1)"
# Before 1.0 each minor version may change the functions.
abi="${version%.*}"
[ "${version%%.*}" = 0 ] || abi="${version%%.*}"

if [ "$(uname -s)" = Darwin ]; then
    swift build -c release --scratch-path .build/static --product CountersignC
    built=.build/static/release/libCountersignC.dylib
    strip() { command strip -x "$3" -o "$2"; }
    names="libcountersign.$abi.dylib libcountersign.dylib"
    file="libcountersign.$version.dylib"
else
    # Static linking needs a build of its own. The runtime's Foundation warns of its own use of mktemp, which nothing calls.
    # Of Foundation's 34 MB of ICU data the library gets 1 MB.
    mkdir -p .build/static
    scripts/icu-data.py "$(dirname "$(readlink -f "$(command -v swift)")")/../lib/swift_static/linux/lib_FoundationICU.a" .build/static/icu.o
    swift build -c release --scratch-path .build/static --product CountersignC --disable-local-rpath \
        -Xswiftc -static-stdlib -Xlinker "--version-script=$PWD/Sources/SDK/CountersignC/countersign.map" \
        -Xlinker --gc-sections -Xlinker --wrap=icudt76_dat -Xlinker "$PWD/.build/static/icu.o" -Xlinker -soname="libcountersign.so.$abi"
    built=.build/static/release/libCountersignC.so
    names="libcountersign.so.$abi libcountersign.so"
    file="libcountersign.so.$version"
fi

out=.build/libcountersign
rm -rf "$out"
mkdir -p "$out"
# The built library keeps its symbols for debuggers and sanitizers.
strip -o "$out/$file" "$built"
for name in $names; do ln -s "$file" "$out/$name"; done
cp Sources/SDK/CCountersign/include/countersign.h "$out/"
cat >"$out/countersign.pc" <<END
prefix=/usr/local
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: countersign
Description: Delivers events from devices under signed tokens, without losing any
Version: $version
Libs: -L\${libdir} -lcountersign
Cflags: -I\${includedir}
END
echo "libcountersign: $out/$file, $(($(wc -c <"$out/$file") / 1000000)) MB"
