"""A learned codebook: the solver's settings, its compiled learning, and the release within all
limits."""

from sfumato.solver.codebook.settings import Codebook

__all__ = ["Codebook"]
