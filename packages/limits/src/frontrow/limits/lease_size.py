"""How large a lease is: the share of a quota that one process may admit before the shared store knows of it.

For `LeasedLimiter`. The blocks of a rule with `lease=n` (`stores/leased_blocks.py`) are as large as the rule says.
"""

from frontrow.limits.quota import Quota

MIN_LEASE, LEASE_PART = 10, 5  # a lease is a fifth of the quota, and enough for a page that asks for everything at once


def lease_of(quota: Quota) -> int:
    """The units of a key that one process may admit before the store knows of them."""
    return min(quota.capacity, max(MIN_LEASE, quota.capacity // LEASE_PART))
