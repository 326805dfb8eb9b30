"""Registers, lists and removes organisers' webhook endpoints. The address is checked first."""

import secrets
from typing import Final, get_args

from frontrow.boxoffice.facts import model as facts
from frontrow.boxoffice.messages.model.messages import Endpoint, EndpointNotFound
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Refused
from frontrow.shared.ids import Ids

MAX_PER_EVENT: Final = 20
SECRET_BYTES: Final = 32
FACTS: Final = frozenset(kind.__name__ for kind in get_args(facts.Fact))


class TooManyEndpoints(Refused):
    code = "too_many_endpoints"


class WebhookEndpoints:
    """Manages the URLs to which the facts of an event are sent."""

    def __init__(
        self,
        book: MessageBook,
        outgoing: SafeHttpClient,
        clock: Clock,
        *,
        ids: Ids | None = None,
        endpoint_secrets: EndpointSecrets | None = None,
    ) -> None:
        self._book, self._outgoing, self._clock = book, outgoing, clock
        self._ids = ids or Ids(clock)
        self._secrets = endpoint_secrets or EndpointSecrets()

    async def register(self, organiser: str, event_id: str, url: str, wanted: tuple[str, ...] = ()) -> Endpoint:
        """Register an endpoint with its own secret, which is shown once. It gets the `wanted` facts, or all.

        The address must be public now, else `UnsafeAddress`. It is checked again before every call.
        """
        unknown = sorted(set(wanted) - FACTS)
        if unknown:
            raise InvalidInput(f"there is no fact {unknown[0][:60]!r}; one is BookingConfirmed", param="facts")
        await self._outgoing.check(url)
        if len(await self._book.endpoints_of(event_id)) >= MAX_PER_EVENT:
            raise TooManyEndpoints(f"an event has at most {MAX_PER_EVENT} webhooks; remove one first", event=event_id)
        secret = f"whsec_{secrets.token_urlsafe(SECRET_BYTES)}"
        endpoint = Endpoint(self._ids.new("whk"), organiser, event_id, url, secret, tuple(sorted(set(wanted))))
        await self._book.put_endpoint(self._secrets.seal(endpoint), self._clock())
        return endpoint

    async def of_event(self, event_id: str) -> list[Endpoint]:
        """The active endpoints of an event."""
        return await self._book.endpoints_of(event_id)

    async def remove(self, endpoint_id: str) -> Endpoint:
        """Remove an endpoint. Nothing more is sent there, not even deliveries that wait already. Can be repeated."""
        found = await self._book.endpoint(endpoint_id)
        if found is None:
            raise EndpointNotFound(f"there is no webhook {endpoint_id[:60]!r}", endpoint=endpoint_id[:60])
        gone = Endpoint(found.id, found.organiser, found.event_id, found.url, found.secret, found.facts, active=False)
        await self._book.put_endpoint(gone, self._clock())
        return gone
