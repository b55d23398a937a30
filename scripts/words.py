#!/usr/bin/env python3
"""Fails when comments and documents have many phrases that are hard to read, or documents have long lines or sentences.

A hit of a pattern shows a text to review. A folder may have 0.5 hits for 100 lines of comments, and 1 for 100 lines of documents.
Lists all hits in folders over their limit, or with --list all hits. Also fails when a test that Conformance/claims.tsv names is missing.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PATTERNS = {
    "clause as a noun": r"(?:^|[.:;,(]\s+|\b(?:of|for|with|to|from|by|that|than|and|or|is|are|at|on|in|about|after|before|beside|behind)\s+)"
                        r"(?:what|who|whoever|whatever|whose|whom)\s+(?!(?:if|to)\b)\w+",
    "person for code": r"\b(?:somebody|someone|nobody|anybody|whoever|everybody|one who|those who|he who)\b",
    "is none": r"\b(?:is|are|was|were|be)\s+(?:none|no such)\b|\bthere is none\b|\bnone (?:is|are|was|of (?:it|them))\b",
    "one that": r"\b(?:one|ones|that|those) (?:that|which|of)\b(?! the\b)",
    "odd word": r"\b(?:anew|thereof|therein|whereof|beside (?:it|them|each|the)|behind (?:it|them|each)|of its own accord|in vain|lies there|"
                r"stands there|gone a little|from now on|up to here|as of|by itself once|is asked for|of a kind|all the same)\b",
    "relic": r"\b(?:seed 00\d|issue \d+|last session|later that day)\b",
}
COMPILED = {name: re.compile(pattern, re.I) for name, pattern in PATTERNS.items()}
# No string literal in Sources may match these. Usual texts, such as "must be one of", match the other patterns.
LITERAL_PATTERNS = ("person for code", "odd word", "relic")
COMMENT_OR_LITERAL = re.compile(r'//[^\n]*|("""[\s\S]*?"""|"(?:[^"\\\n]|\\.)*")')
LIMITS = {"code": 0.5, "documents": 1.0}
LONGEST_LINE = 100
LONGEST_SENTENCE = 25
NO_PROSE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", re.S)
# The ends of paragraphs, list items, headings, table cells and sentences. A `:` or `;` also ends a sentence.
SENTENCE_END = re.compile(r"(\n\s*\n|\n\s*(?:[-*]|\d+\.) |\n#+ |\||(?<=[.!?:;])[*)\"]*\s+)")
CODE = (".swift", ".c", ".h", ".cpp", ".js", ".mjs", ".java", ".kt", ".dart", ".py", ".sh")
BLOCKS = {".py": ('"""', '"""'), "": ("/*", "*/")}


def document_lines(lines):
    isCode = False
    for number, line in lines:
        if line.strip().startswith("```"):
            isCode = not isCode
        elif not isCode and line.strip():
            yield number, line.strip()


def long_sentences(text):
    """The first line and the text of each sentence that is too long. Code counts as one word, and link targets do not count."""
    number = 1
    for part in SENTENCE_END.split(NO_PROSE.sub(lambda cut: "code" * (cut[0][0] == "`") + "\n" * cut[0].count("\n"), text)):
        if len(re.findall(r"\S*\w\S*", part)) > LONGEST_SENTENCE:
            yield number, " ".join(part.split())
        number += part.count("\n")


def comment_lines(lines, suffix):
    first, last = BLOCKS.get(suffix, BLOCKS[""])
    comment = re.compile(r"^\s*#(?!!)\s?(.*)" if suffix in (".py", ".sh", "") else r"(?:^|\s)//[/!]?\s?(.*)")
    isBlock = False
    for number, line in lines:
        text = line.strip()
        if isBlock or text.startswith(first):
            start = 0 if isBlock else len(first)
            isBlock = last not in text[start:]
            yield number, text.strip('"/* ')
        elif (found := comment.search(line)) and found[1] and not found[1].startswith("swift-tools"):
            yield number, found[1]


def groups():
    """The hits and the number of lines of each folder and kind."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = {}
    for name in listed.splitlines():
        path = ROOT / name
        if not path.is_file() or not (name.endswith((*CODE, ".md")) or path.name == "Makefile") or name == "scripts/words.py":
            continue
        kind = "documents" if path.suffix == ".md" else "code"
        content = path.read_text(encoding="utf-8", errors="replace")
        lines = enumerate(content.splitlines(), 1)
        group = found.setdefault((kind, name.split("/")[0] if "/" in name else "."), {"lines": 0, "hits": [], "wrong": []})
        for number, text in document_lines(lines) if kind == "documents" else comment_lines(lines, path.suffix):
            group["lines"] += 1
            group["hits"] += [f"{name}:{number}: {what}: {text}" for what, pattern in COMPILED.items() for _ in pattern.findall(text)]
            if kind == "documents" and not text.startswith("|") and len(re.sub(r"\]\([^)]*\)", "]", text)) > LONGEST_LINE:
                group["wrong"].append(f"{name}:{number}: a line has more than {LONGEST_LINE} characters: {text}")
        for literal in COMMENT_OR_LITERAL.finditer(content) if name.startswith("Sources/") and path.suffix == ".swift" else []:
            number = content.count("\n", 0, literal.start()) + 1
            hits = [what for what in LITERAL_PATTERNS if COMPILED[what].search(literal[1] or "")]
            group["wrong"] += [f"{name}:{number}: {what} in a string literal: {literal[1]}" for what in hits]
        if kind == "documents" and not name.startswith(("Benchmarks/results/", "Conformance/")):
            group["wrong"] += [f"{name}:{number}: a sentence has more than {LONGEST_SENTENCE} words: {text}" for number, text in long_sentences(content)]
    return found


def is_there(name):
    """Whether a test (`Target.Suite/test`) or text (`file: text`) that Conformance/claims.tsv names exists."""
    file, _, text = name.partition(": ")
    target, suite, test = re.split("[./]", name, maxsplit=2)
    pattern = re.escape(text) or rf"\bstruct {suite}\b.*\bfunc {test}\("
    return any(re.search(pattern, path.read_text(), re.S) for path in ROOT.glob(file if text else f"Tests/*/{target}/**/*.swift"))


def main():
    claims = (ROOT / "Conformance/claims.tsv").read_text().splitlines()[1:]
    wrong = [name for claim in claims for name in claim.split("\t")[3].split("; ") if not is_there(name)]
    print(*(f"Conformance/claims.tsv: {name} does not exist" for name in wrong), sep="\n", end="\n" * bool(wrong))
    for (kind, folder), group in sorted(groups().items()):
        isOver = len(group["hits"]) * 100 > LIMITS[kind] * group["lines"]
        wrong = wrong or isOver or bool(group["wrong"])
        for line in (group["hits"] if isOver or "--list" in sys.argv else []) + group["wrong"]:
            print(line[:200])
        if isOver or "--list" in sys.argv:
            print(f"words: {folder}, {kind}: {len(group['hits'])} hits in {group['lines']} lines, {LIMITS[kind]} for 100 are allowed")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
