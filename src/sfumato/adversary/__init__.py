"""Report to guess."""
