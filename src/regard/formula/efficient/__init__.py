"""Attention in less than n² steps. Nothing here yet."""
