"""Presales with registration (Verified Fan): an organiser opens registration and draws; codes are created and mailed.

The draw is first saved as begun, which closes registration. A job then decides all registrations in bounded batches.
Who is chosen follows from what is stored (`presale.model.draw_order`), so any server can continue where another died,
and two servers that work at once write the same result.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.boxoffice.presale.model import (
    MAX_BEACON_CHARS,
    DrawOrder,
    DrawRefused,
    Presale,
    PresaleFixed,
    PresaleNotFound,
    PresaleState,
    Signup,
    SignupState,
    check_presale,
    draw_order,
    rank_of,
)
from frontrow.boxoffice.presale.ports import CodeMaker, SignupBook
from frontrow.boxoffice.presale.signup_mail import SignupMail
from frontrow.boxoffice.presale.signups import FindTimeZone, LoadEvent
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput
from frontrow.shared.jobs import Job, every
from frontrow.shared.quiet_time import QuietTime

CHUNK: Final = 200  # registrations decided in one transaction
CODES_PER_BATCH: Final = 10_000
EVERY_S: Final = 1.0
SEED_BYTES: Final = 24

Note = Callable[[Change], Awaitable[None]]


class Presales:
    """Registration for presales, and the draw."""

    def __init__(
        self,
        book: SignupBook,
        mail: SignupMail,
        codes: CodeMaker,
        clock: Clock,
        event_of: LoadEvent,
        zone_of: FindTimeZone,
        note: Note,
    ) -> None:
        self._book, self._mail, self._codes, self._clock = book, mail, codes, clock
        self._event_of, self._zone_of, self._note = event_of, zone_of, note

    async def get(self, event_id: str) -> Presale:
        presale = await self._book.presale(event_id)
        if presale is None:
            raise PresaleNotFound("this event has no registration for a presale", event=event_id)
        return presale

    async def find(self, event_id: str) -> Presale | None:
        return await self._book.presale(event_id)

    async def counts(self, event_id: str) -> dict[str, int]:
        """How many registrations there are, by state."""
        counts = await self._book.counts(event_id)
        return {state: count for (purpose, state), count in counts.items() if purpose == "presale"}

    async def notices(self, event_id: str) -> int:
        """How many people asked to be notified when the sale opens."""
        counts = await self._book.counts(event_id)
        return counts.get(("notice", "confirmed"), 0) + counts.get(("notice", "sent"), 0)

    async def open(
        self,
        editor: Editor,
        event: Event,
        *,
        opens_at_us: int,
        closes_at_us: int,
        codes: int,
        order: DrawOrder,
        lane: str = "",
    ) -> Presale:
        """Open registration, or change its times and number of codes before the draw."""
        lanes = list(self._codes.lane_names(event))
        presale = Presale(
            event.id, opens_at_us, closes_at_us, codes, order, lane or lanes[-1], secrets.token_urlsafe(SEED_BYTES)
        )
        check_presale(presale, event.presale_starts_at_us, lanes)
        if event.status in (EventStatus.CANCELLED, EventStatus.COMPLETED):
            raise PresaleFixed(f"an event that is {event.status.value} has no presale")
        now_us = self._clock()
        if not await self._book.put_presale(presale, now_us):
            raise PresaleFixed("order and lane are fixed after the first registration, everything after the draw")
        detail = {"codes": codes, "order": order.value, "lane": presale.lane}
        await self._note(Change(editor, "open_presale", event.id, now_us, detail))
        return await self.get(event.id)

    async def draw(self, editor: Editor, event: Event, beacon: str = "") -> Presale:
        """Close registration for good and begin the draw. Called again, it returns the present state.

        `beacon` is public randomness that nobody could know when registration opened.
        """
        presale, now_us = await self.get(event.id), self._clock()
        if presale.state is not PresaleState.OPEN:
            return presale
        if now_us < presale.closes_at_us:
            raise DrawRefused("registration is still open; close it first", reason="open")
        if len(beacon) > MAX_BEACON_CHARS:
            raise InvalidInput(f"a beacon has at most {MAX_BEACON_CHARS} characters", param="beacon")
        firsts = await self._reserve(editor, event, presale)
        if await self._book.begin_draw(event.id, beacon, msgspec.json.encode(firsts).decode(), now_us):
            detail = {"beacon": beacon, "commitment": presale.commitment}
            await self._note(Change(editor, "draw_presale", event.id, now_us, detail))
        return await self.get(event.id)

    async def _reserve(self, editor: Editor, event: Event, presale: Presale) -> list[int]:
        """Reserve codes for everyone who can win. Returns the first number of each batch."""
        confirmed = (await self.counts(event.id)).get(SignupState.CONFIRMED, 0)
        left, firsts = min(presale.codes, confirmed), []
        while left > 0:
            count = min(left, CODES_PER_BATCH)
            firsts.append(await self._codes.reserve(editor, event, presale.lane, count))
            left -= count
        return firsts

    async def work(self) -> int:
        """Continue every draw that was begun. Returns how many there were."""
        begun = await self._book.drawing(self._clock())
        for presale in begun:
            await self._finish_draw(presale)
        return len(begun)

    async def _finish_draw(self, presale: Presale) -> None:
        """Decide every registration and queue its mail."""
        event = await self._event_of(presale.event_id)
        zone = await self._zone_of(event)
        everybody = draw_order(presale, await self._book.registrations(presale.event_id))
        firsts: list[int] = msgspec.json.decode(presale.batches)
        winners = min(presale.codes, len(everybody), len(firsts) * CODES_PER_BATCH)
        cancelled = event.status is EventStatus.CANCELLED
        for start in range(0, len(everybody), CHUNK):
            decided: list[tuple[str, SignupState, int]] = []
            mails: list[NewDelivery] = []
            for place, signup in enumerate(everybody[start : start + CHUNK], start):
                if signup.state is not SignupState.CONFIRMED:
                    continue
                if place < winners:
                    number = firsts[place // CODES_PER_BATCH] + place % CODES_PER_BATCH
                    decided.append((signup.id, SignupState.CHOSEN, number))
                    code = self._codes.text(event, presale.lane, number)
                    mails.append(self._mail.code(signup, event, zone, code))
                else:
                    decided.append((signup.id, SignupState.PASSED_OVER, 0))
                    mails.append(self._mail.missed(signup, event, zone))
            if decided:
                await self._book.write_draw_results(decided, [] if cancelled else mails, self._clock())
        last = rank_of(presale, everybody[winners - 1]) if winners else ""
        await self._book.finish_draw(presale.event_id, last, self._clock())

    async def export(self, event: Event) -> list[dict[str, Any]]:
        """Every confirmed registration, with its code if it has one."""
        presale = await self.get(event.id)
        return [self._row(event, presale, one) for one in await self._book.registrations(event.id)]

    def _row(self, event: Event, presale: Presale, signup: Signup) -> dict[str, Any]:
        chosen = signup.state is SignupState.CHOSEN
        return {
            "registration": signup.id,
            "email": signup.email,
            "language": signup.locale,
            "state": signup.state.value,
            "confirmed_at_us": signup.confirmed_at_us,
            "code": self._codes.text(event, presale.lane, signup.code_number) if chosen else "",
        }

    def job(self, quiet: QuietTime | None = None) -> Job:
        return every("presale draws", self.work, EVERY_S, quiet)
