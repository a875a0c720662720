"""Ratios against others on the same work, in one run: `python -m benchmarks`."""
