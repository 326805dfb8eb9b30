"""Who joins a room inside the platform: the session decides, never the body.

A pass names its person, and bookings belong to that person. So a join that names somebody is refused; a join with a
session is for the session's fan; all others are anonymous. Where everybody has one place, only a fan with a proven
e-mail address counts as a person: anybody could be any number of guests.
"""

from collections.abc import Awaitable, Callable

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.visitors import JoinBody
from frontrow.web.http.messages import EndpointRequest

SESSION_MARKS = (b"__Host-frontrow-session=", b"Bearer frs_")


class SessionIdentity:
    """Implements `JoinIdentity`. `person_of` answers the fan of a request's session, or nothing; `is_proven` whether
    this fan's e-mail address was proven."""

    def __init__(
        self,
        room: WaitingRoom,
        person_of: Callable[[EndpointRequest], Awaitable[str]],
        is_proven: Callable[[str], Awaitable[bool]],
    ) -> None:
        self._room = room
        self._person_of = person_of
        self._is_proven = is_proven

    def check_body(self, body: JoinBody) -> None:
        if body.person:
            raise InvalidInput("sign in to join as yourself; a body cannot say who you are", param="person")

    def has_session(self, request: EndpointRequest) -> bool:
        cookie, authorization = request.header(b"cookie"), request.header(b"authorization")
        if cookie is None and authorization is None:  # nearly everybody who joins
            return False
        credentials = (cookie or b"") + (authorization or b"")
        return any(mark in credentials for mark in SESSION_MARKS)

    async def find_person(self, request: EndpointRequest) -> str:
        return await self._person_of(request)

    async def may_have_place(self, event: str, person: str) -> bool:
        if not self._room.control.view(event).state.config.one_place_per_person:
            return True
        return await self._is_proven(person)
