"""The parts of scripts/browser-test.py."""
