"""Truth to report."""
