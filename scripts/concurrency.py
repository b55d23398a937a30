#!/usr/bin/env python3
"""Fails when docs/internals/concurrency.md does not list the files of Sources with threads, queues, actors or @unchecked Sendable."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = "docs/internals/concurrency.md"
CREATES = re.compile(
    r"^(?!\s*//).*(@unchecked Sendable|\bDispatchQueue(\.global)?\(|\bOperationQueue\(|\bThread \{|\bdetachNewThread)"
    r"|^(package |public |private |final )*actor [A-Z]", re.MULTILINE)

found = {path.stem for path in (ROOT / "Sources").rglob("*.swift") if CREATES.search(path.read_text())}
rows = {name for row in re.findall(r"^\| (`[^|]*) \|", (ROOT / PAGE).read_text(), re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
for name in sorted(found - rows):
    print(f"{PAGE}: add {name}, which creates or uses a thread, a queue or an actor, or is @unchecked Sendable")
for name in sorted(rows - found):
    print(f"{PAGE}: delete {name}, which creates and uses no thread, queue or actor and is not @unchecked Sendable")
sys.exit(found != rows)
