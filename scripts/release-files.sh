#!/bin/sh
# Makes the files of a release in .build/release-files: the Linux program with Swift's libraries linked in, its SHA-256,
# and a list of its parts (SPDX 2.3), made of the libraries that it loads and the Debian packages that they come from.
set -eu
cd "$(dirname "$0")/.."
version="$(sed -n 's/.*countersignVersion = "\(.*\)"/\1/p' Sources/SDK/CountersignCore/Version.swift)"
name="countersign-$version-linux-$(uname -m)"
folder=.build/release-files
[ "$(uname -s)" = Linux ] || { echo "release-files: on Linux only" >&2; exit 1; }
if [ $# -eq 0 ]; then
    swift build -c release --static-swift-stdlib --scratch-path .build-static --product countersign-cli
    set -- .build-static/release/countersign-cli
fi
rm -rf "$folder"
mkdir -p "$folder/$name"
install -m 0755 "$1" "$folder/$name/countersign"
strip "$folder/$name/countersign"
cp LICENSE README.md CHANGELOG.md packaging/countersign.service "$folder/$name/"
# Reproducible: the same files give the same bytes.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -C "$folder" -c "$name" |
    gzip -n >"$folder/$name.tar.gz"
scripts/sbom.py "$folder/$name/countersign" "$version" >"$folder/$name.spdx.json"
rm -r "${folder:?}/$name"
(cd "$folder" && sha256sum "$name.tar.gz" "$name.spdx.json" >SHA256SUMS)
ls -l "$folder"
