"""Where a mechanism is used: tables, devices, a service on this machine, a cluster."""

from sfumato.namespace import lazy

__getattr__, __all__ = lazy(__name__, __file__)
