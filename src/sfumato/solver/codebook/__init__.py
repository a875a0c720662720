"""A learned codebook: report places with a net for their chances, brought within every limit."""

from sfumato.solver.codebook.solver import Codebook

__all__ = ["Codebook"]
