"""What the limits of one request have charged so far, so that a refusal gives it back: all are charged, or none.

A request may pass several limits: a middleware, a dependency, a decorator. Each is checked by itself, one after the
other. What was charged stands in the request's state (the ASGI scope or WSGI environ) until one of them refuses.
"""

import asyncio
from collections.abc import MutableMapping
from typing import Any

from frontrow.core.background_tasks import carry_out
from frontrow.core.errors import ConfigError
from frontrow.core.failures import failures_here
from frontrow.limits.http.headers import FIELDS, ROUTE_FIELDS, ToldFields
from frontrow.limits.http.request_limits import REFUNDS, Charge

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
        try:
            told.replace(charge.limits.give_back(charge))
        except ConfigError as error:  # its clients serve only asyncio, and this is a thread: it stays charged
            failures_here().note(REFUNDS, error)


async def agive_back(state: State) -> None:
    """`give_back` for asyncio. A client that hangs up meanwhile changes nothing: each charge is given back, once."""
    begun = []  # at once, so that whoever hears of the cancellation gives nothing back a second time
    for charge, told in _take(state):
        if charge.limits.in_memory:  # nothing to wait for
            told.replace(charge.limits.give_back(charge))
        else:
            begun.append((charge, told, charge.limits.begin_return(charge)))
    if begun:
        await carry_out(_areturn_all(begun), REFUNDS)


async def _areturn_all(begun: list[tuple[Charge, ToldFields, list[str]]]) -> None:
    """Give all back, whichever of their stores fail. The first failure is raised in the end."""
    returning = [charge.limits.agive_back(charge, names) for charge, _, names in begun]
    results = await asyncio.gather(*returning, return_exceptions=True)
    for (_, told, _), result in zip(begun, results, strict=True):
        if not isinstance(result, BaseException):
            told.replace(result)
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _take(state: State) -> list[tuple[Charge, ToldFields]]:
    found: list[Any] = state.pop(CHARGES, [])
    return [_whole(state, each) if len(each) > 2 else each for each in found]


def _whole(state: State, plain: tuple[Any, ...]) -> tuple[Charge, ToldFields]:
    """The charge of an outermost middleware, which remembers it in the cheapest way. Its headers are the first."""
    limits, route, key, decision, fields, began_us = plain
    charge = Charge(limits, route, key, route.cost, decision, fields, began_us)
    return charge, ToldFields.at(state[FIELDS], 0)
