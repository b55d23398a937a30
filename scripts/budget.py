#!/usr/bin/env python3
"""Fails when the repository is larger than the budget in CONTRIBUTING.md allows."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def files(*patterns):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z", *patterns], cwd=ROOT, check=True, stdout=subprocess.PIPE)
    return [path for path in (ROOT / name for name in listed.stdout.decode().split("\0") if name) if path.is_file()]


def lines(*patterns):
    return sum(path.read_bytes().count(b"\n") for path in files(*patterns))


def declarations(library):
    return sum(": is " not in line for path in files(f"docs/api/{library}.txt") for line in path.read_text().splitlines())


MEASURES = {
    "Lines of Swift in `Sources`": lambda: lines("Sources/*.swift"),
    "Lines of Swift in `Tests`": lambda: lines("Tests/*.swift"),
    "Lines in `scripts` and `tools`": lambda: lines("scripts", "tools"),
    "Bytes of documents": lambda: sum(path.stat().st_size for path in files("*.md") if ".docc" not in str(path)),
    "Public declarations": lambda: declarations("*"),
    "Declarations in `import Countersign`": lambda: sum(declarations(name) for name in ("Countersign", "CountersignCore", "CountersignDelivery")),
    "Targets of `make`": lambda: len(re.findall(r"^[a-z-]+:.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)),
    "Commands": lambda: len(re.findall(r'Command\(\s*"[a-z]', "".join(path.read_text() for path in files("Sources/CLI/*.swift")))),
    "Settings": lambda: (ROOT / "docs/reference/settings.md").read_text().count("\n| ") - 1,
}


def main():
    rows = re.findall(r"^\| (.+?) \| ([\d,]+) \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    limits = {name: int(limit.replace(",", "")) for name, limit in rows}
    if limits.keys() != MEASURES.keys():
        sys.exit(f"budget: CONTRIBUTING.md and {sys.argv[0]} measure different things: {limits.keys() ^ MEASURES.keys()}")
    found = {name: measure() for name, measure in MEASURES.items()}
    over = [name for name in found if found[name] > limits[name]]
    for name in over:
        print(f"budget: {name}: {found[name]:,}, and {limits[name]:,} are allowed. Remove something, or raise the budget and say so in CHANGELOG.md.")
    if "--show" in sys.argv:
        for name, count in found.items():
            print(f"{count:>9,} of {limits[name]:>9,}  {name}")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
