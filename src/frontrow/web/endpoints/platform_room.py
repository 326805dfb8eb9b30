"""The room's endpoints inside the platform: who a place belongs to is decided by the session, never by the body.

A pass names its person, and bookings belong to that person. So a join that names somebody is refused; a join with a
session takes the session's fan; all others are anonymous. Where everybody has one place, only a fan with a proven
address counts as somebody: guests could be as many as they like.
"""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.web.endpoints.messages import Answer, Ask, idempotency_key
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.room_visitors import JoinBody, Result

SESSION_MARKS = (b"__Host-frontrow-session=", b"Bearer frs_")
PersonOf = Callable[[Ask], Awaitable[str]]
IsProven = Callable[[str], Awaitable[bool]]


class PlatformRoom(RoomEndpoints):
    """See the module. `person_of` answers the fan of a request's session, or nothing."""

    person_of: PersonOf | None = None
    is_proven: IsProven | None = None  # whether this person's e-mail address was proven

    def join(self, event: str, ask: Ask) -> Result:
        """POST join, for the fan of the session if there is one."""
        told = (ask.header(b"cookie") or b"") + (ask.header(b"authorization") or b"")
        if self.person_of is not None and any(mark in told for mark in SESSION_MARKS):
            return self._join_as_fan(event, ask, self.person_of)
        return super().join(event, ask)

    async def _join_as_fan(self, event: str, ask: Ask, person_of: PersonOf) -> Answer:
        try:
            body = self._join_body(ask)
            ip = self._ip(ask)
            self.entry.count_ip(ip)
            person = await person_of(ask)
            if person:
                self.entry.count_person(f"{event}/{person}")
            if person and not await self._counts(event, person):
                person = ""
            human = self.entry.verify(event, body.proof, ip)
            key = idempotency_key(ask)
        except FrontrowError as error:
            return self.problem("join", error, ask, event)
        return await self._join(event, ask, replace(body, person=person), ip, key, human)

    async def _counts(self, event: str, person: str) -> bool:
        """Whether this person may have the one place of a person in this room."""
        if self.is_proven is None or not self.room.view(event).state.config.one_place_per_person:
            return True
        return await self.is_proven(person)

    def _join_body(self, ask: Ask) -> JoinBody:
        body = super()._join_body(ask)
        if body.person:
            raise InvalidInput("sign in to join as yourself; a body cannot say who you are", param="person")
        return body
