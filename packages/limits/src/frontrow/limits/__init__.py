"""A standalone rate limiter: six algorithms, memory or Redis, several rules at once, all or nothing.


limiter = Limiter(Quota.parse("100/minute"))
limiter.check("user:42").allowed
"""

from frontrow.limits.concurrency import ConcurrencyLimiter, Permit
from frontrow.limits.leased_limiter import LeasedLimiter
from frontrow.limits.limiter import Limiter
from frontrow.limits.quota import (
    CostTooLarge,
    Decision,
    InvalidCost,
    InvalidKey,
    InvalidQuota,
    Quota,
    Rule,
    StoreDown,
    Throttled,
)
from frontrow.limits.reservations import Reservation
from frontrow.limits.tiers import Tiers

__all__ = [
    "ConcurrencyLimiter",
    "CostTooLarge",
    "Decision",
    "InvalidCost",
    "InvalidKey",
    "InvalidQuota",
    "LeasedLimiter",
    "Limiter",
    "Permit",
    "Quota",
    "Reservation",
    "Rule",
    "StoreDown",
    "Throttled",
    "Tiers",
]
