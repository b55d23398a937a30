"""The parts of scripts/web-test.py."""
