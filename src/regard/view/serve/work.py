"""How much is computed for one answer: of a long map only every so-many-th row, so that nobody waits long."""

# Q queries, K keys

from ...record import Head

__all__ = ["FIRST", "MOST", "allowed_step", "chosen_rows", "rows_at_once"]

FIRST = 2**32  # multiply-adds of an answer whose step is left to us: some 650 rows of 100,000 keys, a third of a second
MOST = 2**36  # and of any answer: some 10,000 such rows
COARSER = 3  # the middle one of three rows stands for them, and of three such rows again the middle one: so the rows of
# a coarse answer are among those of a finer one, and stand in the middle of what they stand for


def chosen_rows(rows: range, step: int) -> range:
    """Every step-th of some rows next to each other (there are at least so many), the same for every part of a map."""
    return range(rows.start + (step // 2 - rows.start) % step, rows.stop, step)


def allowed_step(head: Head, rows: range, cols: range, asked: int) -> int:
    """A power of 3: the largest that is not above what was asked, or the next that is not too much work.

    asked: 0 leaves it to us, for an answer that comes at once.
    """
    step, most = 1, MOST if asked else FIRST
    while step * COARSER <= min(asked, len(rows)):
        step *= COARSER
    while step * COARSER <= len(rows) and work(head, chosen_rows(rows, step), cols) > most:
        step *= COARSER
    return step


def work(head: Head, rows: range, cols: range) -> int:
    """Multiply-adds for the weights of some rows on some columns; without their log-sum-exps, over all keys."""
    keys = len(cols) if head.is_summed(rows) else max(head.shape[-1], len(cols))
    return len(rows) * keys * int(head.map.queries.shape[-1])


def rows_at_once(head: Head) -> int:
    """How many rows may be asked for at once where nothing is known of them yet."""
    return max(1, MOST // (head.shape[-1] * int(head.map.queries.shape[-1])))
