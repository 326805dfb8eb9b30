"""Holds: these seats, or the best that fit, for the owner of a pass.

A hold needs a pass (B17) and is counted by its visit and by person. A hopeless attempt is refused from this server's
memory, without a task (N2).
"""

import asyncio
import functools
from collections.abc import Callable

import msgspec

from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.holds import Hold, HoldResult, SeatsTaken, ShopPass, VisitEnded
from frontrow.core.background_tasks import start_task
from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.shared.local_time import time_text
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.web.endpoints.callers import Passes
from frontrow.web.http.bodies.bookings import line_views
from frontrow.web.http.bodies.holds import HoldBody, HoldView
from frontrow.web.http.bodies.json_values import MoneyView
from frontrow.web.http.messages import (
    EndpointRequest,
    EndpointResponse,
    FutureResponse,
    Result,
    header_line,
    idempotency_key,
    json_answer,
    problem_answer,
)
from frontrow.web.http.request_bodies import check_size, decode_body

MAX_READY = 200_000

_decode_hold = msgspec.json.Decoder(HoldBody).decode


class HoldEndpoints:
    """The endpoint that holds seats of every event of this process. `token_of` makes the token of a booking."""

    def __init__(
        self,
        holds: HoldService,
        purchases: Purchases,
        entry: EntranceLimits,
        passes: Passes,
        token_of: Callable[[str], str],
    ) -> None:
        self._holds, self._purchases, self._entry, self._passes = holds, purchases, entry, passes
        self._token_of = token_of
        self._ready: dict[SeatsTaken, EndpointResponse] = {}  # encoded answers to attempts on taken seats

    def hold(self, event_id: str, request: EndpointRequest) -> Result:
        """POST holds: these seats, or the best that fit, for the owner of the pass."""
        try:
            shop_pass = self._passes.count_and_read(event_id, request)
            self._entry.count_person(shop_pass.fan)
            check_size(request)
            body = decode_body(_decode_hold, request.body)
            if bool(body.seats) == (body.best is not None):
                raise InvalidInput("name the seats, or say what the best should be like", param="seats")
            if body.best is None:
                refusal = self._holds.refusal(event_id, shop_pass, body.seats)
                if refusal is not None:
                    return self._refused(refusal)
            key = idempotency_key(request)
            if body.best is not None or body.replace:
                return self._choose(event_id, shop_pass, body, key)
            attempt = self._holds.attempt(event_id, shop_pass, body.seats, idempotency_key=key)
        except FrontrowError as error:
            return problem_answer(error)
        if isinstance(attempt, SeatsTaken):
            return self._refused(attempt)
        return FutureResponse(attempt, functools.partial(self._attempted, shop_pass))

    async def _choose(self, event_id: str, shop_pass: ShopPass, body: HoldBody, key: str | None) -> EndpointResponse:
        wish = body.best.wish() if body.best is not None else None
        try:
            if body.replace or wish is None:
                hold = await self._purchases.place_or_change(event_id, shop_pass, body.seats, wish)
            else:
                hold = await self._holds.place_best(event_id, shop_pass, wish, idempotency_key=key)
        except VisitEnded as error:
            await self._passes.end_bought(shop_pass, self._purchases)
            return problem_answer(error)
        except FrontrowError as error:
            return problem_answer(error)
        return self._placed(hold)

    def _attempted(self, shop_pass: ShopPass, attempt: "asyncio.Future[HoldResult]") -> EndpointResponse:
        """The answer to an attempt that has ended."""
        try:
            result = attempt.result()
        except VisitEnded as error:
            start_task(self._passes.end_bought(shop_pass, self._purchases), "visits that have bought")
            return problem_answer(error)
        except FrontrowError as error:
            return problem_answer(error)
        return problem_answer(result) if isinstance(result, SeatsTaken) else self._placed(result)

    def _placed(self, hold: Hold) -> EndpointResponse:
        head = b"idempotent-replayed: true\r\n" if hold.repeated else b""
        return json_answer(201, self.view(hold), header_line("location", f"/v1/bookings/{hold.booking_id}") + head)

    def view(self, hold: Hold) -> HoldView:
        return HoldView(
            hold.booking_id,
            hold.event_id,
            list(hold.seats),
            MoneyView(hold.amount_minor, hold.currency),
            time_text(hold.expires_at_us),
            hold.fence,
            self._token_of(hold.booking_id),
            hold.repeated,
            line_views(hold.lines, dict(zip(hold.indexes, hold.seats, strict=True)), hold.currency),
        )

    def _refused(self, refusal: SeatsTaken) -> EndpointResponse:
        ready = self._ready.get(refusal)
        if ready is None:
            ready = problem_answer(refusal)
            if len(refusal.seats) == 1:  # one object for everybody who asks for this seat
                if len(self._ready) >= MAX_READY:
                    self._ready.clear()
                self._ready[refusal] = ready
        return ready
