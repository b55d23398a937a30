#!/bin/sh
# Builds libcountersign into .build/libcountersign: the library, links with its version's names, its header and a pkg-config file.
# On Linux the library contains Swift's runtime and exports only the functions of the header, with symbol versions.
set -eu
cd "$(dirname "$0")/.."
version="$(sed -n 's/.*"\([0-9.]*\)".*/\1/p' Sources/SDK/CountersignCore/Version.swift | head -n 1)"
# The version in the soname: major and minor before 1.0, when minor versions may change functions, else major.
abi="${version%.*}"
[ "${version%%.*}" = 0 ] || abi="${version%%.*}"

if [ "$(uname -s)" = Darwin ]; then
    swift build -c release --scratch-path .build/static --product CountersignC
    built=.build/static/release/libCountersignC.dylib
    strip() { command strip -x "$3" -o "$2"; }
    names="libcountersign.$abi.dylib libcountersign.dylib"
    file="libcountersign.$version.dylib"
else
    # The linker warns of mktemp in the runtime's Foundation, which nothing calls. icu-data.py reduces Foundation's ICU data from
    # 34 MB to 1 MB.
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
