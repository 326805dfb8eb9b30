"""Webhooks to organisers: every fact of their events, signed and timestamped, retried for three days with backoff.

A consumer writes one delivery per endpoint (each organiser has a queue) and the delivery worker sends them. Receivers
check `Frontrow-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">` with their secret, refuse old times, and
ignore a `Frontrow-Delivery` that they have seen, because a delivery may come twice.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from frontrow.boxoffice.facts.model import Fact, encode_fact
from frontrow.boxoffice.facts.ports import PlannedWrite
from frontrow.boxoffice.messages.deliveries import DeliveryWorker, NoteDelivery
from frontrow.boxoffice.messages.model.messages import SENT, Delivery, Endpoint, NewDelivery, Outcome, not_tried
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.safe_http import SafeHttpClient, UnsafeAddress
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure
from frontrow.shared.coalescer import Coalescer
from frontrow.shared.ids import made_at_us
from frontrow.shared.vault import SealBroken
from frontrow.shared.webhook_signature import sign

KIND: Final = "webhook"
GIVE_UP_AFTER_S: Final = 3 * 24 * 3600
AT_ONCE: Final = 8  # calls to one organiser at a time
PER_QUEUE: Final = 40
CACHED_S: Final = 5  # how long the endpoints of an event are cached
MAX_CACHED: Final = 10_000
CLOCKS_DIFFER_US: Final = 60 * US_PER_S  # those of two servers, at most


class _WebhookBody(msgspec.Struct, frozen=True):
    """The stored body of a delivery."""

    endpoint: str
    payload: str


def _is_after(fact: Fact, endpoint: Endpoint) -> bool:
    """Whether the endpoint was there when the fact happened: facts without an endpoint are not recorded, so a bus that
    lost its data delivers them again."""
    return fact.at_us > made_at_us(endpoint.id) - CLOCKS_DIFFER_US


class OrganiserWebhooks:
    """Plans deliveries of facts and sends them."""

    def __init__(
        self, book: MessageBook, outgoing: SafeHttpClient, clock: Clock, secrets: EndpointSecrets | None = None
    ) -> None:
        self._book, self._outgoing, self._clock = book, outgoing, clock
        self._secrets = secrets or EndpointSecrets()
        self._cached: dict[str, tuple[int, list[Endpoint]]] = {}
        self._reads: Coalescer[str, list[Endpoint]] = Coalescer(self._read_endpoints, name="webhook endpoints")

    async def plan(self, number: int, fact: Fact) -> Sequence[PlannedWrite]:
        """One delivery per endpoint that wants this fact."""
        endpoints = self._cached_endpoints(fact.event_id)
        if endpoints is None:
            endpoints = await self._reads.ask(fact.event_id)
        name = type(fact).__name__
        wanted = [one for one in endpoints if (not one.facts or name in one.facts) and _is_after(fact, one)]
        if not wanted:
            return ()
        payload = f'{{"id":"fct_{number}","type":"{name}","fact":{encode_fact(fact)}}}'
        body = {one.id: msgspec.json.encode(_WebhookBody(one.id, payload)).decode() for one in wanted}
        return self._book.make_delivery_writes(
            [NewDelivery(KIND, one.organiser, f"webhook:{one.id}:{number}", body[one.id]) for one in wanted],
            self._clock(),
        )

    def check_url(self, url: str) -> None:
        """Refuse what can never be sent to. The address behind a name is checked again with every delivery."""
        self._outgoing.check_form(url)

    async def test(self, endpoint: Endpoint) -> bool:
        """Queue a test delivery, which is sent like every other, to see whether the endpoint answers."""
        now_us = self._clock()
        payload = f'{{"id":"fct_test-{now_us}","type":"Test","fact":{{"event_id":"{endpoint.event_id}"}}}}'
        body = msgspec.json.encode(_WebhookBody(endpoint.id, payload)).decode()
        dedupe = f"webhook:{endpoint.id}:test-{now_us}"
        writes = self._book.make_delivery_writes([NewDelivery(KIND, endpoint.organiser, dedupe, body)], now_us)
        return await self._book.once("webhook test", dedupe, writes, now_us)

    def _cached_endpoints(self, event_id: str) -> list[Endpoint] | None:
        until_us, endpoints = self._cached.get(event_id, (0, []))
        return endpoints if self._clock() < until_us else None

    async def _read_endpoints(self, event_ids: Sequence[str]) -> list[list[Endpoint]]:
        """The endpoints of each event. A batch of facts asks for all of them at once: each event is read once."""
        found: dict[str, list[Endpoint]] = {}
        for event_id in dict.fromkeys(event_ids):
            endpoints = self._cached_endpoints(event_id)
            if endpoints is None:
                endpoints = await self._book.endpoints_of(event_id)
                if len(self._cached) >= MAX_CACHED:
                    self._cached.clear()
                self._cached[event_id] = (self._clock() + CACHED_S * US_PER_S, endpoints)
            found[event_id] = endpoints
        return [found[event_id] for event_id in event_ids]

    async def send(self, deliveries: Sequence[Delivery], note: NoteDelivery | None = None) -> list[Outcome]:
        """Send deliveries of one organiser, a few at a time."""
        turn = asyncio.Semaphore(AT_ONCE)

        async def one(delivery: Delivery) -> Outcome:
            async with turn:
                try:
                    return await self._send(delivery)
                except Exception as error:  # whatever it is, it must not affect other deliveries
                    note_failure(error, delivery=delivery.number)
                    return Outcome(False, final=False, reason=repr(error))

        return await asyncio.gather(*(one(delivery) for delivery in deliveries))

    async def _send(self, delivery: Delivery) -> Outcome:
        kept = msgspec.json.decode(delivery.body, type=_WebhookBody)
        try:
            endpoint = await self._book.endpoint(kept.endpoint)
        except (Unavailable, Overloaded) as error:
            return not_tried(error)
        if endpoint is None or not endpoint.active:
            return Outcome(False, reason="the endpoint is gone")
        try:
            secret = self._secrets.open(endpoint)
        except SealBroken:
            secret = None
        if secret is None:
            return Outcome(False, final=False, reason="its secret was sealed with another FRONTROW_SECRET_KEY")
        body = kept.payload.encode()
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "Frontrow-OrganiserWebhooks/1",
            "Frontrow-Delivery": delivery.dedupe,
            "Frontrow-Signature": sign(body, secret, self._clock()),
        }
        try:
            status = await self._outgoing.post(endpoint.url, body, headers)
        except (UnsafeAddress, Unavailable) as error:
            return Outcome(False, final=False, reason=error.message)  # the address may be fixed within three days
        if 200 <= status < 300:
            return SENT
        return Outcome(False, final=status == 410, reason=f"answered {status}")

    def worker(self) -> DeliveryWorker:
        return DeliveryWorker(
            KIND, self._book, self._clock, self.send, give_up_after_s=GIVE_UP_AFTER_S, per_queue=PER_QUEUE
        )
