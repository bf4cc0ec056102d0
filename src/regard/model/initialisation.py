"""How the matrices of a stack of blocks begin, so that deep ones train from the first step."""

import torch
from torch import nn

from .attention import MultiHeadAttention
from .decoder import Decoder
from .encoder import Encoder
from .feed_forward import FeedForward


@torch.no_grad()
def initialise(stack: Encoder | Decoder) -> None:
    """Xavier everywhere; and in pre-norm stacks, what each part adds begins smaller the more parts there are.

    With pre-norm nothing ever shrinks the residual: n parts that each add numbers of variance 1 make it n times as
    large, so the late blocks add next to nothing to it and the gradient of the early ones is drowned in that of the
    embedding. The output matrix of each part times 1/√n (Radford et al. 2019) lets all n together add as much as the
    embedding brought, whatever the depth. Post-norm stacks norm after each part, and have no such need.
    """
    parts = [part for part in stack.modules() if isinstance(part, MultiHeadAttention | FeedForward)]
    for part in parts:
        for linear in (child for child in part.children() if isinstance(child, nn.Linear)):
            nn.init.xavier_uniform_(linear.weight)
            if linear.bias is not None:
                nn.init.zeros_(linear.bias)
        if stack.config.norm_first:
            part.output.weight.mul_(len(parts) ** -0.5)
