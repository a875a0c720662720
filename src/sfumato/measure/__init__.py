"""Leakage and loss: exact on tables, estimated on samples.  The judge does not know the player."""

import sys
from types import ModuleType
from typing import Any, NoReturn

from sfumato.namespace import lazy

__getattr__, __all__ = lazy(__name__, __file__)


class _Package(ModuleType):
    """`sf.measure(...)` is a likely try, after the command of that name."""

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("sf.measure is a package; type sf.judge(solution, data.test)")


sys.modules[__name__].__class__ = _Package
