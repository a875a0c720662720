"""(secret, truth) pairs: tables in, Samples out."""

from sfumato.namespace import lazy

__getattr__, __all__ = lazy(__name__, __file__)
