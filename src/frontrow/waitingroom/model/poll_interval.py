"""Pure: how long a page waits before it asks for its status again.

A page asks after a quarter of the longest estimated wait, but every 5 to 300 seconds. Without an estimate it asks every
30 seconds.
"""

LEAST_S, MOST_S, SHARE = POLL_POLICY = (5, 300, 4)  # published in the now-serving document
UNKNOWN_S = 30


def poll_after_s(high_s: int | None) -> int:
    """The interval for a wait of at most `high_s` seconds; None: nobody can say how long the wait is."""
    if high_s is None:
        return UNKNOWN_S
    poll_s = high_s // SHARE
    return LEAST_S if poll_s < LEAST_S else MOST_S if poll_s > MOST_S else poll_s
