"""Weights → pictures: in the terminal, as plots."""
