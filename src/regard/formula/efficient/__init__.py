"""Attention in less than n² steps. The place is kept for it."""
