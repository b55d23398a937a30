#!/usr/bin/env python3
"""Fails when a target that handles requests compares or hashes text by its canonical form.

The `==`, `<`, `hash(into:)` and `hasPrefix` of Swift's `String`, `Substring` and `Character` normalize text. For many
combining marks in a row that takes quadratic time, and it makes texts equal that differ in SQL. Files that import
CountersignCore compare text by its bytes instead (Sources/SDK/CountersignCore/Text). The script reads the symbols that the
object files of a debug build refer to, so it does not depend on the form of the source.

    scripts/text-lint.py            checks every target below, after `swift build`
    scripts/text-lint.py --all      lists the uses in files with exceptions too
"""

import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build/debug"
TARGETS = [
    "CountersignCore", "CountersignCrypto", "CountersignJSON", "CountersignJOSE", "GatewayModel", "GatewayHTTP",
    "GatewayStorage", "GatewayPostgreSQL", "GatewayObservability", "GatewayIngest", "GatewayDelivery",
    "GatewayNATS", "GatewayAdmin", "CountersignGateway",
]
# Targets that Package.swift omits too.
if os.environ.get("COUNTERSIGN_NATS") != "1":
    TARGETS.remove("GatewayNATS")
if os.environ.get("COUNTERSIGN_POSTGRESQL") == "0":
    TARGETS.remove("GatewayPostgreSQL")

# In mangled names SS is String, Ss Substring, SJ Character, Sy StringProtocol, SQ Equatable, SH Hashable, SL Comparable.
FORBIDDEN = [
    (re.compile(r"^\$s(SS|Ss|SJ)(2ee|1l|1g|2le|2ge)oi"), "== or <"),
    (re.compile(r"^\$s(SS|Ss|SJ)4hash4into"), "a hash"),
    (re.compile(r"^\$s(SS|Ss|SJ)(SQ|SH|SL)s(WP|Mc)$"), "a generic comparison, or a key of a Dictionary or Set"),
    (re.compile(r"^\$sSysE(2ee|2ne|1l|1g|2le|2ge)oi"), "== or < of a Substring"),
    (re.compile(r"^\$s(SS|Sys?E?)9has(Prefix|Suffix)"), "hasPrefix or hasSuffix"),
    (re.compile(r"^\$ss\d+_stringCompare"), "== or <"),
    (re.compile(r"^\$ss\d+_findStringSwitchCase"), "init(rawValue:) of an enumeration that is not a TextEnum"),
    (re.compile(r"17_StringProcessing"), "a search by Character or a regular expression"),
    (re.compile(r"^\$sSy10FoundationE\d*(components|range|contains|replacingOccurrences|compare|caseInsensitive)"),
     "a search or comparison of Foundation"),
    (re.compile(r"^\$s10Foundation(11JSONDecoder|17JSONSerialization)|^\$sSo19NSRegularExpression"),
     "a parser of Foundation, which hashes names"),
]
# The compiler generates hashing of raw values for these enumerations.
# `Identifiable` refers to the conformance of its ids without calling it.
ALLOWED_IN = re.compile(r"O(SHAA|SYAA|s12CaseIterableAA)\w*(TW|Wb|WT)$|OSHAAMc$|OSHAAWP$|s12IdentifiableAA2IDsAD")

# Exceptions: each file with the reason why clients' long texts do not reach its comparisons.
CODES = "hashValue and _rawHashValue of codes that the program declares"
EXCEPTIONS = {
    "CountersignCore/JSONValue+Any.swift": "dictionaries that an app passes to the SDK",
    "CountersignCore/Text/BytewiseDictionary.swift": "from and to a Dictionary, which the SDK's callers have",
    "CountersignJOSE/JOSEError.swift": CODES,
    "CountersignJOSE/JWSAlgorithm.swift": "hashValue and _rawHashValue: a header's algorithm is compared, never hashed",
    "CountersignJOSE/Keys/CustomerTokenKey.swift": "ids that the caller of a library signs",
    "CountersignJOSE/Verification/VerificationReport.swift": CODES,
    "GatewayHTTP/Messages/MultipartForm.swift": "searches arrays of bytes",
    "GatewayModel/GatewayError.swift": CODES,
    "GatewayModel/Configuration/LogLevel.swift": "settings at the start",
    "GatewayModel/Tokens/TokenFamily.swift": "a column that only the gateway writes",
    "GatewayObservability/Metrics/Metrics.swift": "ids of apps and paths of endpoints, in order",
    "GatewayStorage/Files/FileProblem.swift": "errors of the file system",
    "GatewayStorage/Webhooks/DeliveryStore.swift": "searches arrays of bytes",
}


def references(path):
    """Returns the forbidden symbols that an object file (64-bit ELF) refers to, as (user, symbol, kind)."""
    data = path.read_bytes()
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not a 64-bit ELF object: run this on Linux")
    (offset,) = struct.unpack_from("<Q", data, 0x28)
    (count,) = struct.unpack_from("<H", data, 0x3C)
    if count == 0:
        (count,) = struct.unpack_from("<Q", data, offset + 0x20)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + 64 * index) for index in range(count)]
    table = next(section for section in sections if section[1] == 2)
    names = sections[table[6]]
    text = data[names[4]:names[4] + names[5]]

    def name(at):
        return text[at:text.index(b"\0", at)].decode()

    symbols, placed = [], {}
    wide = next((section for section in sections if section[1] == 18), None)
    for index in range(table[5] // 24):
        at, info, _, section, value, size = struct.unpack_from("<IBBHQQ", data, table[4] + 24 * index)
        if section == 0xFFFF and wide is not None:
            (section,) = struct.unpack_from("<I", data, wide[4] + 4 * index)
        symbols.append((at, section))
        if section and size and info & 15 in (1, 2):
            placed.setdefault(section, []).append((value, value + size, at))
    wanted = {}
    for index, (at, section) in enumerate(symbols):
        if section == 0 and at:
            symbol = name(at)
            kind = next((kind for pattern, kind in FORBIDDEN if pattern.search(symbol)), None)
            if kind is not None:
                wanted[index] = (symbol, kind)
    found = set()
    if wanted:
        for section in sections:
            if section[1] != 4:
                continue
            users = placed.get(section[7], [])
            for place in range(section[4], section[4] + section[5], 24):
                at, info, _ = struct.unpack_from("<QQq", data, place)
                if info >> 32 in wanted:
                    user = next((name(n) for start, end, n in users if start <= at < end), "?")
                    found.add((user, *wanted[info >> 32]))
    return found


def demangled(symbols):
    tool = shutil.which("swift-demangle") or shutil.which("swift")
    command = [tool] if tool.endswith("demangle") else [tool, "demangle"]
    result = subprocess.run(
        [*command, "--simplified", "--compact"], input="\n".join(symbols), text=True, capture_output=True, check=True)
    return dict(zip(symbols, result.stdout.splitlines()))


def main():
    every = "--all" in sys.argv
    findings, used, missing = [], set(), []
    for target in TARGETS:
        folder = next(group / target for group in (ROOT / "Sources").iterdir() if (group / target).is_dir())
        sources = sorted(folder.rglob("*.swift"))
        for source in sources:
            file = str(source.relative_to(folder.parent))
            built = BUILD / f"{target}.build" / f"{source.name}.o"
            if not built.is_file():
                missing.append(file)
                continue
            uses = {use for use in references(built) if not ALLOWED_IN.search(use[0])}
            if uses and file in EXCEPTIONS:
                used.add(file)
                if not every:
                    continue
            findings += [(file, *use) for use in sorted(uses)]
    if missing:
        print(f"text-lint: no object file below {BUILD} for {missing[0]} and {len(missing) - 1} more: "
              "run swift build; a layout without one object for each file cannot be checked")
        return 1
    names = demangled(sorted({use[1] for use in findings})) if findings else {}
    for file, user, symbol, kind in findings:
        print(f"Sources/{file}: {kind} in {names[user]} ({symbol})")
    unused = sorted(set(EXCEPTIONS) - used)
    for file in unused:
        print(f"scripts/text-lint.py: {file} needs no exception")
    if findings and not every:
        files = len({use[0] for use in findings})
        print(f"text-lint: {files} files compare text by its canonical form. Import CountersignCore there; use "
              "BytewiseDictionary, BytewiseSet, TextEnum, or utf8")
    return 1 if unused or (findings and not every) else 0


if __name__ == "__main__":
    sys.exit(main())
