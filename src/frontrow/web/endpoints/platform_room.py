"""The room's endpoints inside the platform: who a place belongs to is decided by the session, never by the body.

A pass names its person, and bookings belong to that person. So a join that names somebody is refused; a join with a
session takes the session's fan; all others are anonymous. Where everybody has one place, only a fan with a proven
address counts as somebody: guests could be as many as they like.
"""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.waitingroom.door.door_limits import Entry
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.messages import EndpointRequest, EndpointResponse, idempotency_key
from frontrow.web.endpoints.room import RoomEndpoints
from frontrow.web.endpoints.room_visitors import JoinBody, Result
from frontrow.web.room.page import RoomPages
from frontrow.web.streams.positions import Streams

SESSION_MARKS = (b"__Host-frontrow-session=", b"Bearer frs_")
PersonOf = Callable[[EndpointRequest], Awaitable[str]]
IsProven = Callable[[str], Awaitable[bool]]


class PlatformRoom(RoomEndpoints):
    """See the module. `person_of` answers the fan of a request's session, or nothing; `is_proven` says whether a
    person's e-mail address was proven."""

    def __init__(
        self,
        room: WaitingRoom,
        entry: Entry,
        pages: RoomPages,
        streams: dict[str, Streams],
        *,
        person_of: PersonOf,
        is_proven: IsProven,
        organiser_key: str = "",
    ) -> None:
        super().__init__(room, entry, pages, streams, organiser_key=organiser_key)
        self.person_of, self.is_proven = person_of, is_proven

    def join(self, event: str, ask: EndpointRequest) -> Result:
        """POST join, for the fan of the session if there is one."""
        told = (ask.header(b"cookie") or b"") + (ask.header(b"authorization") or b"")
        if any(mark in told for mark in SESSION_MARKS):
            return self._join_as_fan(event, ask)
        return super().join(event, ask)

    async def _join_as_fan(self, event: str, ask: EndpointRequest) -> EndpointResponse:
        try:
            body = self._join_body(ask)
            ip = self._ip(ask)
            self.entry.knock_ip(ip)
            person = await self.person_of(ask)
            if person:
                self.entry.knock_person(f"{event}/{person}")
            if person and not await self._counts(event, person):
                person = ""
            human = self.entry.verify(event, body.proof, ip)
            key = idempotency_key(ask)
        except FrontrowError as error:
            return self.problem("join", error, ask, event)
        return await self._join(event, ask, replace(body, person=person), ip, key, human)

    async def _counts(self, event: str, person: str) -> bool:
        """Whether this person may have the one place of a person in this room."""
        if not self.room.view(event).state.config.one_place_per_person:
            return True
        return await self.is_proven(person)

    def _join_body(self, ask: EndpointRequest) -> JoinBody:
        body = super()._join_body(ask)
        if body.person:
            raise InvalidInput("sign in to join as yourself; a body cannot say who you are", param="person")
        return body
