"""sfumato: obfuscation mechanisms that hide who you are within a loss budget.

The names stand in `__init__.pyi`; each is imported when it is first used, so that `sfumato -h`
answers at once.
"""

from importlib import import_module

from sfumato import show
from sfumato.namespace import lazy
from sfumato.version import __version__ as __version__

__getattr__, __all__ = lazy(__name__, __file__)

show.worded_by(lambda: import_module("sfumato.render.text"))
show.worded_by(lambda: import_module("sfumato.render.endings"))
show.worded_by(lambda: import_module("sfumato.render.notebook"))


def __dir__() -> list[str]:
    return sorted(__all__)
