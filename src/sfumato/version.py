"""The version, alone in its file so that the command line can print it without importing the
rest.  It comes from the tag; the build writes it."""

try:
    from sfumato._version import __version__
except ModuleNotFoundError:  # a tree that was never installed
    __version__ = "0+source"

__all__ = ["__version__"]
