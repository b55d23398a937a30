#!/usr/bin/env python3
"""Makes an object file with a small part of Foundation's ICU data: icu-data.py LIB_FOUNDATIONICU.A OUT.o

Linked with --wrap=icudt76_dat, the object replaces 34 MB of locales, encodings and collations, which the SDK never reads.
The object has the Unicode tables for internationalized host names, time zones, and the root and English locales.
The format of ICU's icupkg is a header, then a table of (offset of the name, offset of the data).
"""

import re
import struct
import subprocess
import sys

KEPT = re.compile(rb"[^/]+/(.+\.nrm|(root|en|en_US|en_US_POSIX|pool|res_index|supplementalData|likelySubtags|numberingSystems|keyTypeData|"
                  rb"timezoneTypes|zoneinfo64|icuver)\.res)")


def reduced(data):
    header = struct.unpack_from("<H", data)[0]
    data, header = data[header:], data[:header]
    entries = list(struct.iter_unpack("<II", data[4:4 + 8 * struct.unpack_from("<I", data)[0]]))
    ends = [start for _, start in entries[1:]] + [len(data)]
    items = [(name, data[start:end]) for (at, start), end in zip(entries, ends)
             if KEPT.fullmatch(name := data[at:data.index(b"\0", at)])]
    table, names, body = b"", b"", b""
    first = -(-(4 + sum(8 + len(name) + 1 for name, _ in items)) // 16) * 16
    for name, item in items:
        table += struct.pack("<II", 4 + 8 * len(items) + len(names), first + len(body))
        names += name + b"\0"
        body += item + b"\0" * (-len(item) % 16)
    return header + (struct.pack("<I", len(items)) + table + names).ljust(first, b"\0") + body


def main(library, out):
    with open(out, "wb") as file:
        subprocess.run(["ar", "p", library, "icu_packaged_data.cpp.o"], stdout=file, check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".rodata", out, f"{out}.data"], check=True)
    with open(f"{out}.data", "rb+") as file:
        data = reduced(file.read())
        file.seek(0)
        file.truncate()
        file.write(data)
    subprocess.run(["objcopy", "--update-section", f".rodata={out}.data", "--redefine-sym", "icudt76_dat=__wrap_icudt76_dat", out],
                   check=True)


main(*sys.argv[1:])
