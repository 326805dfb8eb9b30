"""What the limits of one request have charged so far, so that a refusal gives it back: all are charged, or none.

A request may pass several limits: a middleware, a dependency, a decorator. Each is checked by itself, one after the
other. What was charged stands in the request's state (the ASGI scope or WSGI environ) until one of them refuses.
"""

import contextlib
from collections.abc import MutableMapping
from typing import Any

from frontrow.core.errors import ConfigError
from frontrow.limits.http.headers import FIELDS, ROUTE_FIELDS, ToldFields
from frontrow.limits.http.request_limits import Charge

CHARGES = "frontrow.limits.charges"
State = MutableMapping[str, Any]


def tell_charge(state: State, charge: Charge, key: str = ROUTE_FIELDS) -> ToldFields:
    """Remember what was charged, and take its headers among those of the request."""
    told = ToldFields(state, charge.fields, key)
    if charge.decision.allowed:
        state.setdefault(CHARGES, []).append((charge, told))
    return told


def give_back(state: State) -> None:
    """Return what the other limits of this request were charged, because this one refuses it."""
    for charge, told in _take(state):
        with contextlib.suppress(ConfigError):  # its clients serve only asyncio, and this is a thread: it stays charged
            told.replace(charge.limits.give_back(charge))


async def agive_back(state: State) -> None:
    """`give_back` for asyncio."""
    for charge, told in _take(state):
        told.replace(await charge.limits.agive_back(charge))


def _take(state: State) -> list[tuple[Charge, ToldFields]]:
    found: list[Any] = state.pop(CHARGES, [])
    return [_whole(state, each) if len(each) > 2 else each for each in found]


def _whole(state: State, plain: tuple[Any, ...]) -> tuple[Charge, ToldFields]:
    """The charge of an outermost middleware, which remembers it in the cheapest way. Its headers are the first."""
    limits, route, key, decision, fields, began_us = plain
    charge = Charge(limits, route, key, route.cost, decision, fields, began_us)
    return charge, ToldFields.at(state[FIELDS], 0)
