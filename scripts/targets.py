#!/usr/bin/env python3
"""Fails when folders or files of one target have circular references, or when the targets that a target declares as dependencies
are not the targets that its files import.

The compiler rejects circular imports between targets, but not circular references inside a target. This script finds references
of a file in its text: names of types that other files of the target declare. It does not find uses of an extension's members.

    scripts/targets.py            checks every target below Sources
    scripts/targets.py --order    also prints the folders of every target, lowest first
"""

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "Sources"
# Folders of Sources that contain targets.
GROUPS = {"SDK", "Gateway", "CShims"}
DECLARATION = re.compile(
    r"^(?:@[\w(), .]+\s+)*(?:(?:public|package|internal|final|indirect|nonisolated)\s+)*"
    r"(?:struct|class|enum|actor|protocol|typealias)\s+(\w+)", re.MULTILINE)
# Comments and strings. Names in them are not references.
SILENT = re.compile(r'//[^\n]*|/\*.*?\*/|#*""".*?"""#*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
NAME = re.compile(r"(?<![\w.`])[A-Z]\w*")


def without_texts(source):
    """The source with comments and strings replaced by spaces, so that line numbers stay the same."""
    return SILENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)


def components(graph):
    """Strongly connected components, lowest first (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = []
            while not members or members[-1] != node:
                members.append(stack.pop())
            found.append(sorted(members))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def arrows(target):
    """For each file of a target, the files that it refers to, each with the line and the name of the first reference."""
    texts = {path: without_texts(path.read_text()) for path in sorted(target.rglob("*.swift"))}
    declared = defaultdict(set)
    for path, text in texts.items():
        for name in DECLARATION.findall(text):
            declared[name].add(path)
    found = {path: {} for path in texts}
    for path, text in texts.items():
        for match in NAME.finditer(text):
            for other in declared.get(match.group(), ()):
                if other != path and path not in declared[match.group()]:
                    line = text.count("\n", 0, match.start()) + 1
                    found[path].setdefault(other, (line, match.group()))
    return found


def check(target, shows_order):
    """The circular references in a target, as lines of text."""
    files = arrows(target)

    def folder(path):
        parent = path.parent.relative_to(target)
        return parent.parts[0] if parent.parts else "(root)"

    folders, witnesses = {folder(path): set() for path in files}, defaultdict(list)
    for path, others in files.items():
        for other, (line, name) in others.items():
            if folder(path) != folder(other):
                folders[folder(path)].add(folder(other))
                witnesses[folder(path), folder(other)].append(f"{path.relative_to(SOURCES)}:{line}: {name}")
    lines = []
    for members in components(folders):
        if shows_order:
            print(f"{target.name}: {' '.join(members)}")
        if len(members) > 1:
            lines.append(f"{target.name}: folders in a circle: {', '.join(members)}")
            for (source, goal), places in sorted(witnesses.items(), key=lambda item: len(item[1])):
                if source in members and goal in members:
                    lines.append(f"  {source} -> {goal}")
                    lines += [f"    {place}" for place in places]
    for members in components({path: set(others) for path, others in files.items()}):
        if len(members) > 1:
            lines.append(f"{target.name}: files in a circle:")
            for path in members:
                for other, (line, name) in files[path].items():
                    if other in members:
                        lines.append(f"  {path.relative_to(SOURCES)}:{line}: {name}")
    return lines


def dependencies():
    """Missing and unused dependencies of the targets in Package.swift, as lines of text."""
    package = json.loads(subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, check=True, stdout=subprocess.PIPE,
                                        env=os.environ | {"COUNTERSIGN_NATS": "1"}).stdout)
    names, lines = {target["name"] for target in package["targets"]}, []
    for target in package["targets"]:
        name = target["name"]
        folder = ROOT / (target.get("path") or f"{'Tests' if target['type'] == 'test' else 'Sources'}/{name}")
        text = "\n".join(path.read_text() for path in folder.rglob("*.swift"))
        imported = set(re.findall(r"^[^/\n]*\bimport (?:[a-z]+ )?(\w+)", text, re.MULTILINE)) & names - {name}
        declared = {(d.get("byName") or d.get("target"))[0] for d in target["dependencies"]} if text else imported
        lines += [f"{name}: no file imports {other}" for other in sorted(declared - imported)]
        lines += [f"{name}: imports {other} without declaring the dependency" for other in sorted(imported - declared)]
    return lines


def main():
    shows_order = "--order" in sys.argv[1:]
    folders = [path for path in sorted(SOURCES.iterdir()) if path.is_dir()]
    targets = [target for path in folders for target in (sorted(path.iterdir()) if path.name in GROUPS else [path])]
    lines = [line for target in targets for line in check(target, shows_order)]
    lines += dependencies()
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()
