"""Truth to report."""

from sfumato.namespace import lazy

__getattr__, __all__ = lazy(__name__, __file__)
