#!/usr/bin/env python3
"""Serves a page that records through a network, with tokens and in a tab that a person can spoil: make demo-web.

    scripts/demo-web.py .build/debug/countersign-cli

Opens nothing: it prints an address and runs until Ctrl-C, with a gateway of its own in a temporary folder.
"""
import sys
import threading

from web.demo import Demo
from web.stand import Stand


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.split("\n\n")[1].strip())
    stand = Stand(sys.argv[1])
    try:
        print(f"Open {Demo(stand).address}\n"
              "Let it record, cut its network, let its tokens expire, kill its tab, open the address again.\n"
              "Ctrl-C ends it.", flush=True)
        threading.Event().wait()
    except KeyboardInterrupt:
        pass
    finally:
        stand.gateway.remove()


if __name__ == "__main__":
    main()
