"""Leakage and loss: exact on tables, estimated on samples.  The judge does not know the player."""

from sfumato.namespace import lazy

__getattr__, __all__ = lazy(__name__, __file__)
