#!/usr/bin/env python3
"""Fails when the public API differs from docs/api, which has a file for each library.

    scripts/public-api.py FOLDER            compares the symbol graphs below FOLDER, which scripts/docs.sh extracts
    scripts/public-api.py FOLDER --accept   writes the present API to docs/api

Accept an intended change, so that the commit shows it, and describe it in CHANGELOG.md.
"""

import difflib
import json
import re
import sys
from pathlib import Path

WRITTEN = Path(__file__).resolve().parent.parent / "docs" / "api"
TARGET = re.compile(r"/Sources/(?:SDK/|Gateway/)?(\w+)/")
# The libraries whose declarations an app gets with `import Countersign`.
APP = ["Countersign", "CountersignDelivery", "CountersignCore"]


def belongs(symbol, folder):
    """Whether a symbol is part of the library. False for symbols without a source, which are synthesized or
    Foundation's, and for symbols of a re-exported target that has its own file."""
    if "location" not in symbol:
        return False
    target = TARGET.search(symbol["location"]["uri"])
    return not target or target[1] == folder.name or not (folder.parent / target[1]).is_dir()


def declarations(folder):
    """The public declarations of one library, sorted, as one line each."""
    lines = set()
    for path in sorted(folder.glob("*.symbols.json")):
        graph = json.loads(path.read_text())
        for symbol in graph["symbols"]:
            if not belongs(symbol, folder):
                continue
            declaration = "".join(part["spelling"] for part in symbol.get("declarationFragments", []))
            owner = ".".join(symbol["pathComponents"][:-1])
            lines.add((f"{owner}: " if owner else "") + " ".join(declaration.split()))
        names = {
            symbol["identifier"]["precise"]: ".".join(symbol["pathComponents"])
            for symbol in graph["symbols"] if belongs(symbol, folder)}
        for relation in graph["relationships"]:
            if relation["kind"] in ("conformsTo", "inheritsFrom") and relation["source"] in names:
                target = names.get(relation["target"]) or relation.get("targetFallback", relation["target"])
                lines.add(f"{names[relation['source']]}: is {target}")
    return sorted(lines)


def main():
    folder, accepts = Path(sys.argv[1]), "--accept" in sys.argv[2:]
    changed, visible = False, 0
    modules = sorted(path for path in folder.iterdir() if path.is_dir())
    for module in modules:
        now, file = declarations(module), WRITTEN / f"{module.name}.txt"
        if not now:
            sys.exit(f"api: {module.name} has no public declaration: its symbol graph is missing")
        if module.name in APP:
            visible += sum(": is " not in line for line in now)
        if accepts:
            WRITTEN.mkdir(parents=True, exist_ok=True)
            file.write_text("\n".join(now) + "\n")
            continue
        before = file.read_text().splitlines() if file.exists() else []
        difference = [
            line for line in difflib.unified_diff(before, now, lineterm="", n=0)
            if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        if difference:
            changed = True
            print(f"api: {module.name} has changed:", *difference, sep="\n  ", file=sys.stderr)
    if changed:
        sys.exit("api: to accept the change, run scripts/public-api.py .build/docs/symbols --accept and add a line to CHANGELOG.md")
    print(f"api: {len(modules)} libraries agree with docs/api; `import Countersign` gives an app {visible} declarations")


if __name__ == "__main__":
    main()
