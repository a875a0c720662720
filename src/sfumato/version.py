"""The version, alone in its file so that the command line can print it without importing the
rest."""

__version__ = "0.1.0"
