"""What people measure attention by: rollout, value norms, gradients, scores of heads, word alignment; never n×n."""

from .flow import relevance, rollout
from .gradients import attention_gradient, gradient_received
from .links import Gold, Links, alignment_error_rate, as_pharaoh, from_pharaoh, read_pharaoh
from .scores import (
    COLUMNS,
    distance,
    duplicate_token,
    entropy,
    head_table,
    importance,
    induction,
    next_token,
    previous_token,
    retrieval,
    self_token,
    sink,
    strongest_key,
)
from .table import Found, HeadName, HeadTable
from .values import value_received, value_top, value_weighted
from .words import alignment

__all__ = [
    "COLUMNS", "Found", "Gold", "HeadName", "HeadTable", "Links", "alignment", "alignment_error_rate", "as_pharaoh",
    "attention_gradient", "distance", "duplicate_token", "entropy", "from_pharaoh", "gradient_received", "head_table",
    "importance", "induction", "next_token", "previous_token", "read_pharaoh", "relevance", "retrieval", "rollout",
    "self_token", "sink", "strongest_key", "value_received", "value_top", "value_weighted",
]  # fmt: skip
