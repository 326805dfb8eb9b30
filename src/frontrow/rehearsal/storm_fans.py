"""The fans of a storm: each makes one whole journey, from the event's page to the tickets.

A journey is an open loop. When a fan comes, and how long it thinks between two requests, is drawn before the storm and
does not depend on the server. Each request has a moment at which it is meant to be sent; its latency counts from there.
"""

import asyncio
import heapq
import itertools
import json
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Any

from frontrow.rehearsal.fan_calls import FanCalls, FanRequest
from frontrow.rehearsal.http_client import ConnectionPool, Reply
from frontrow.rehearsal.storm_record import FanOutcome, StormRecord
from frontrow.rehearsal.visit_draws import LOOK_S

WATCH_S = 0.2  # how often the window of the room is read, once per process
MAX_TRIES = 50  # of one request that is refused with a Retry-After
MAX_LOOKS = 60  # at a booking that is not confirmed yet, or whose tickets are not made yet
LOOK_AGAIN_S = 0.5
MAX_PAUSE_S = 60.0
BURST_S = 0.1  # requests may come together, as long as their rate over this time is within the bound
ASKS_TO_WAIT = (409, 429, 503)
WRONG = (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError, KeyError, TypeError)


class WrongAnswer(Exception):
    """A response that no fan should get."""


class TurnedAway(Exception):
    """A refusal that stayed one, however often the fan came back."""


@dataclass(frozen=True, slots=True)
class FanDraw:
    """What one fan will do."""

    number: int
    arrives_s: float
    leaves_line_s: float
    reaction_s: float
    leaves: bool
    browse_s: float
    seats: int
    pay_s: float
    abandons: bool
    fails: bool
    poll_s: float

    @property
    def address(self) -> str:
        """An address of the range for benchmarks (RFC 2544), or a private one where that is used up."""
        low = self.number
        return f"{'198.18' if low < 1 << 16 else f'10.{low >> 16 & 255}'}.{low >> 8 & 255}.{low & 255}"


class StormClock:
    """Seconds of the storm: 0 is its beginning (the opening of the sale), on the clock of the whole machine."""

    def __init__(self, zero_s: float) -> None:
        self._zero_s = zero_s

    def now_s(self) -> float:
        return time.monotonic() - self._zero_s

    async def sleep_until(self, at_s: float) -> None:
        await asyncio.sleep(max(0.0, at_s - self.now_s()))


class RequestPacer:
    """Spreads requests so that there are never more per second than the storm's bound."""

    def __init__(self, per_s: float) -> None:
        self._gap_s, self._next_s = 1.0 / per_s, 0.0

    def reserve(self, now_s: float) -> float:
        """When the next request may be sent: now, or later while the bound is reached."""
        at_s = max(self._next_s, now_s - BURST_S)
        self._next_s = at_s + self._gap_s
        return max(now_s, at_s)


@dataclass(slots=True)
class RoomWatch:
    """Reads the room's window again and again, and tells fans when it is their turn: as live pages do."""

    clock: StormClock
    hi: int = 0
    opened: bool = False
    _turns: list[tuple[int, int, "asyncio.Future[float]"]] = field(default_factory=list)
    _openings: list["asyncio.Future[float]"] = field(default_factory=list)
    _order: "itertools.count[int]" = field(default_factory=itertools.count)

    def turn_of(self, position: int) -> "asyncio.Future[float]":
        """Is done, with the time, once the window has reached this position."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._turns, (position, next(self._order), future))
        self._tell()
        return future

    def opening(self) -> "asyncio.Future[float]":
        """Is done once the room admits people, so that positions are known."""
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._openings.append(future)
        self._tell()
        return future

    def read(self, document: dict[str, Any]) -> None:
        """Take in a now-serving document: `l` has lo, hi and issued of each lane, `s` the phase."""
        self.hi = max(self.hi, int(document["l"][0][1]))
        self.opened = self.opened or document["s"] == "open"
        self._tell()

    def _tell(self) -> None:
        now_s = self.clock.now_s()
        while self._turns and self._turns[0][0] <= self.hi:
            _, _, future = heapq.heappop(self._turns)
            if not future.done():
                future.set_result(now_s)
        if self.opened:
            for future in self._openings:
                if not future.done():
                    future.set_result(now_s)
            self._openings.clear()


@dataclass(frozen=True, slots=True)
class StormGround:
    """What all fans of one process share."""

    event_id: str
    clock: StormClock
    pool: ConnectionPool
    pacer: RequestPacer
    watch: RoomWatch
    record: StormRecord
    end_s: float
    pays: bool


class StormFan:
    """One fan. `run` is its journey; how it ended is counted in the record."""

    def __init__(self, draw: FanDraw, ground: StormGround) -> None:
        self._draw, self._ground = draw, ground
        self._clock, self._record = ground.clock, ground.record
        self._calls = FanCalls(ground.event_id, self._send)
        self._meant_s = draw.arrives_s  # when the next request is meant to be sent
        self._held, self._paying = 0, False  # seats of this fan that are not bought, and whether a payment began

    async def run(self) -> None:
        self._record.arrived += 1
        self._record.second(self._draw.arrives_s).arrived += 1
        try:
            outcome = await self._journey()
        except asyncio.CancelledError:
            outcome = FanOutcome.CUT_OFF
        except TurnedAway:
            outcome = FanOutcome.TURNED_AWAY
        except (WrongAnswer, *WRONG) as error:
            self._record.record_odd(f"{type(error).__name__}: {error}")
            outcome = FanOutcome.FAILED
        if self._paying:
            self._record.seats_unsure += self._held
        else:
            self._record.seats_left_held += self._held
        self._record.outcomes[outcome.value] += 1

    async def _journey(self) -> FanOutcome:
        draw, calls = self._draw, self._calls
        await self._expect(calls.open_page(), 200)
        shown = (await self._expect(calls.read_event(), 200)).json()
        asked_s = max(0.0, self._meant_s)  # nobody waits before the opening
        joined = (await self._expect(calls.join(), 201)).json()
        turn_s = await self._wait_for_turn(joined)
        if turn_s is None:
            return FanOutcome.GAVE_UP
        self._record.record_wait(draw.arrives_s, turn_s - asked_s)
        self._record.second(turn_s).admitted += 1
        await self._think(draw.reaction_s)
        if (await self._expect(calls.read_status(), 200)).json()["state"] == "expired":
            return FanOutcome.GAVE_UP
        await self._expect(calls.claim(), 201)
        self._record.second(self._clock.now_s()).entered += 1
        try:
            return await self._visit(shown)
        finally:
            self._record.second(self._clock.now_s()).left += 1
            if not asyncio.current_task().cancelling():  # type: ignore[union-attr]
                await calls.leave_shop()

    async def _wait_for_turn(self, joined: dict[str, Any]) -> float | None:
        """When it was this fan's turn; None if it gave up before."""
        watch = self._ground.watch
        if joined["state"] == "active":
            return self._clock.now_s()
        if joined["position"] is None:  # in the draw: positions are known once the room is open
            if await self._wait(watch.opening()) is None:
                return None
            joined = (await self._expect(self._calls.read_status(), 200)).json()
        return await self._wait(watch.turn_of(int(joined["position"])))

    async def _wait(self, turn: "asyncio.Future[float]") -> float | None:
        """Wait for this, read the window every now and then as a page does, and give up when patience ends."""
        next_s = self._clock.now_s()
        while not turn.done():  # ends with the storm at the latest: it cancels every fan
            next_s += self._draw.poll_s
            until_s = min(next_s, self._draw.leaves_line_s)
            await asyncio.wait((turn,), timeout=max(0.0, until_s - self._clock.now_s()))
            if turn.done():
                break
            if self._clock.now_s() >= self._draw.leaves_line_s:
                turn.cancel()
                return None
            self._meant_s = next_s
            self._ground.watch.read((await self._expect(self._calls.read_window(), 200)).json())
        self._meant_s = self._clock.now_s()
        return turn.result()

    async def _visit(self, shown: dict[str, Any]) -> FanOutcome:
        draw, calls = self._draw, self._calls
        await self._expect(calls.read_map(shown["map_url"]), 200)
        await self._expect(calls.read_seats(), 200)
        await self._think(draw.browse_s)
        if draw.leaves:
            return FanOutcome.LOOKED
        held = await self._expect(calls.hold_best(draw.seats, apart_ok=True), 201, 409)
        if held.status == 409:
            await self._think(LOOK_S)
            return FanOutcome.IN_VAIN
        seats = held.json()["seats"]
        self._held = len(seats)
        await self._think(draw.pay_s)
        if draw.abandons:
            return FanOutcome.ABANDONED
        if not self._ground.pays:
            await self._release()
            return FanOutcome.GAVE_BACK
        return await self._pay(seats)

    async def _release(self) -> None:
        await self._expect(self._calls.release(), 200, 410)
        self._held = 0

    async def _pay(self, seats: list[str]) -> FanOutcome:
        calls, self._paying = self._calls, True
        paid = await self._expect(
            calls.pay("pm_card_declined" if self._draw.fails else "pm_card_visa"), 200, 202, 402, 410
        )
        if paid.status == 410:  # it took longer than the hold lasts
            self._held = 0
            return FanOutcome.ABANDONED
        if paid.status == 402:
            self._paying = False
            await self._release()
            return FanOutcome.DECLINED
        booking = paid.json()
        for _ in range(MAX_LOOKS):
            if booking["state"] == "confirmed":
                break
            if booking["state"] in ("cancelled", "expired"):  # the hold ended while the payment was on its way
                self._held = 0
                return FanOutcome.ABANDONED
            await self._think(LOOK_AGAIN_S)
            booking = (await self._expect(calls.read_booking(), 200)).json()
        else:
            raise WrongAnswer(f"the booking is still {booking['state']} after a paid payment")
        self._held = 0
        self._record.bookings += 1
        self._record.seats_bought += len(seats)
        self._record.seats_awaiting_tickets += len(seats)
        self._record.second(self._clock.now_s()).sold += len(seats)
        await self._fetch_tickets(seats)
        return FanOutcome.BOUGHT

    async def _fetch_tickets(self, seats: list[str]) -> None:
        for _ in range(MAX_LOOKS):
            rows = (await self._expect(self._calls.read_tickets(), 200)).json()["tickets"]
            if len(rows) >= len(seats):
                break
            await self._think(LOOK_AGAIN_S)
        if sorted(row["seat"] for row in rows) != sorted(seats):
            raise WrongAnswer(f"bought {sorted(seats)}, got tickets for {sorted(row['seat'] for row in rows)}")
        self._record.record_tickets(rows)

    async def _think(self, seconds: float) -> None:
        self._meant_s = self._clock.now_s() + seconds
        await self._clock.sleep_until(self._meant_s)

    async def _expect(self, call: Awaitable[Reply], *expected: int) -> Reply:
        reply = await call
        if reply.status in expected:
            return reply
        if reply.status in (*ASKS_TO_WAIT, 403):
            raise TurnedAway
        raise WrongAnswer(f"{reply.status} {reply.body[:200].decode(errors='replace')}")

    async def _send(self, request: FanRequest) -> Reply:
        """Send a request, count it, and do as a refusal's Retry-After says."""
        clock, record = self._clock, self._record
        for _ in range(MAX_TRIES):
            at_s = self._ground.pacer.reserve(clock.now_s())
            if at_s > clock.now_s():
                record.held_back += 1
                await clock.sleep_until(at_s)
                self._meant_s = at_s  # the storm's own bound is no latency of the server
            async with self._ground.pool.connection(self._draw.address) as connection:
                sent_s = clock.now_s()
                reply = await connection.send(request.method, request.path, request.body, **request.headers)
            done_s = clock.now_s()
            record.record_reply(request.step, self._meant_s, sent_s, done_s)
            self._meant_s = done_s
            if reply.status < 400:
                break
            record.record_refusal(request.step, read_reason(reply), done_s)
            pause_s = min(reply.retry_after_s, MAX_PAUSE_S)
            if reply.status not in ASKS_TO_WAIT or not pause_s or done_s + pause_s >= self._ground.end_s:
                break
            await self._think(pause_s)
        return reply


def read_reason(reply: Reply) -> str:
    """The code of a refusal, or its status if it has none."""
    try:
        return str(json.loads(reply.body)["code"])
    except (ValueError, KeyError, TypeError):
        return str(reply.status)
