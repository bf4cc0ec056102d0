"""How the learning rate goes: up in the warm-up, then down by a cosine or an inverse square root, or not at all."""

import math

from ..errors import OptionError

SCHEDULES = ("cosine", "inverse-sqrt", "constant")


def rate(step: int, *, schedule: str, warmup: float, steps: int, final_share: float) -> float:
    """What the highest rate is multiplied by in step `step`, counted from 0.

    It rises evenly over `warmup` steps. Then "cosine" falls to `final_share` at the last of `steps`; "inverse-sqrt"
    falls as √(warmup / step), which needs no end (Vaswani et al. 2017); "constant" stays.
    """
    if schedule not in SCHEDULES:
        raise OptionError(f"schedule is {schedule!r}; it must be one of {', '.join(SCHEDULES)}.")
    done = step + 1
    if done <= warmup:
        return done / warmup
    if schedule == "inverse-sqrt":
        return math.sqrt(max(warmup, 1) / done)
    if schedule == "constant":
        return 1.0
    share = min((done - warmup) / max(steps - warmup, 1), 1.0)
    return final_share + (1 - final_share) * 0.5 * (1 + math.cos(math.pi * share))
