"""Pure: how many people of each lane are admitted when `total` may come in.

Lanes share by weight while they have people waiting. The others get what a lane cannot use, so nobody waits for an
empty lane. Rounding is carried over as credit, so that even single admissions keep to the weights. The share of another
lane never changes a position in one's own.
"""

from collections.abc import Sequence


def share(
    total: int, waiting: Sequence[int], weights: Sequence[int], credits: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(admissions per lane, credits for the next time). Admits min(total, everybody waiting)."""
    given = [0] * len(waiting)
    left = min(total, sum(waiting))
    for _ in range(len(waiting)):  # each turn fills a lane, or is the last
        open_lanes = [i for i, people in enumerate(waiting) if given[i] < people]
        weight = sum(weights[i] for i in open_lanes)
        wanted = {i: left * weights[i] // weight for i in open_lanes}
        portions = {i: min(want, waiting[i] - given[i]) for i, want in wanted.items()}
        for i, portion in portions.items():
            given[i] += portion
        left -= sum(portions.values())
        if portions == wanted:
            break
    next_credits = _hand_out_rest(given, left, waiting, weights, credits)
    return tuple(given), next_credits


def _hand_out_rest(
    given: list[int], left: int, waiting: Sequence[int], weights: Sequence[int], credits: Sequence[int]
) -> tuple[int, ...]:
    """Give the remainder (less than one per lane) to the lanes with the most credit; return the new credits."""
    total = sum(given) + left
    busy = [people > 0 for people in waiting]
    weight = sum(w for w, b in zip(weights, busy, strict=True) if b) or 1
    # Owed in units of 1/weight people. An empty lane is owed nothing and saves nothing.
    owed = [credits[i] + total * weights[i] - given[i] * weight if busy[i] else 0 for i in range(len(waiting))]
    for _ in range(left):
        best = max((i for i in range(len(waiting)) if given[i] < waiting[i]), key=lambda i: (owed[i], -i))
        given[best] += 1
        owed[best] -= weight
    limit = 1000 * weight
    return tuple(max(-limit, min(limit, x)) if given[i] < waiting[i] else 0 for i, x in enumerate(owed))
