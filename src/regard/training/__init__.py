"""Batches → a trained model: tasks and their objectives, the loop, schedules, checkpoints, metrics."""

from ..errors import MissingExtra

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise MissingExtra("regard.training needs PyTorch: pip install regard[train]") from missing

from . import recipes
from .run import Outcome, train
from .settings import Settings

__all__ = ["Outcome", "Settings", "recipes", "train"]
