"""Leakage and loss: exact on tables, estimated on samples.  The judge does not know the player."""
