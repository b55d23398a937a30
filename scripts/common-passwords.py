#!/usr/bin/env python3
"""Makes the table of common passwords from the ranked list of zxcvbn (MIT; see Sources/CShims/CCommonPasswords/NOTICE).

usage: python3 -m venv .venv && .venv/bin/pip install zxcvbn==4.5.0 && .venv/bin/python scripts/common-passwords.py

Contains the 10,000 most common passwords, and further common passwords that are long enough for the dashboard (12 bytes). The table
has the first five bytes of the SHA-256 of each password in lower case, sorted. The chance that a password that is not in the
list is rejected is 1e-8.
"""

import hashlib
import pathlib

from zxcvbn.frequency_lists import FREQUENCY_LISTS

ranked = list(FREQUENCY_LISTS["passwords"])
chosen = {word.lower() for word in ranked[:10_000]} | {word.lower() for word in ranked if len(word.encode()) >= 12}
table = sorted(hashlib.sha256(word.encode()).digest()[:5] for word in chosen)
assert len(table) == len(set(table)) and len(table) >= 10_000
path = pathlib.Path(__file__).parent.parent / "Sources/CShims/CCommonPasswords/common-passwords.bin"
path.write_bytes(b"".join(table))
print(f"{len(table)} passwords, {path.stat().st_size} bytes")
