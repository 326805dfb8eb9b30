"""Frontrow: flash-sale ticketing that does not fall over.

Three systems that also work alone: `frontrow.limits`, `frontrow.waitingroom` and `frontrow.boxoffice`.
"""

__version__ = "0.1.0"
