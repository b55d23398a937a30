"""Tests that run a built gateway as another process (they start it, send to it, kill it, and read its data), and tools for releases."""
