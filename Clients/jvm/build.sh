#!/bin/sh
# Builds countersign.jar and libcountersign_jni.so. Put libcountersign into the folder of libcountersign_jni.so.
# usage: build.sh FOLDER_OF_LIBCOUNTERSIGN FOLDER_OF_COUNTERSIGN_H OUT
set -eu
library="$1"
header="$2"
out="$3"
cd "$(dirname "$0")"

mkdir -p "$out/classes"
find src/main/java -name '*.java' >"$out/sources"
javac --release 11 -Xlint:all -Werror -d "$out/classes" "@$out/sources"
printf 'Automatic-Module-Name: dev.countersign\n' >"$out/manifest"
jar --create --file "$out/countersign.jar" --manifest "$out/manifest" -C "$out/classes" .

home="$(java -XshowSettings:properties -version 2>&1 | sed -n 's/.*java.home = //p')"
# shellcheck disable=SC2016 # expanded by the dynamic loader
cc -O2 -shared -fPIC -Wall -Wextra -Werror -I "$home/include" -I "$home/include/linux" -I "$header" src/main/c/countersign_jni.c \
    -o "$out/libcountersign_jni.so" -L "$library" -lcountersign -lpthread '-Wl,-rpath,$ORIGIN'
