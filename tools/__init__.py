"""Tests that run a built gateway as another process: they start it, send to it, kill it, and compare what it has stored."""
