"""Adaptive concurrency and load shedding: as many at once as a service can serve without a queue, found by measuring.

    limit = AdaptiveLimit("search")
    async with limit.acquire("critical"): ...

Middleware is in `adaptive.asgi` and `adaptive.wsgi`, clients are in `frontrow.limits.outgoing`.
"""

from frontrow.limits.adaptive.controllers import AimdLimit, DelayPressure, GradientLimit
from frontrow.limits.adaptive.limit import AdaptiveLimit, Shed, Slot
from frontrow.limits.adaptive.load_meter import Ended
from frontrow.limits.adaptive.metrics import AdaptiveMetrics

__all__ = ["AdaptiveLimit", "AdaptiveMetrics", "AimdLimit", "DelayPressure", "Ended", "GradientLimit", "Shed", "Slot"]
