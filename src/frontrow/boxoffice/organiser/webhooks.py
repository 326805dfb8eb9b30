"""The webhooks of an organiser, as its members manage them: register, rotate, remove, test, deliver again.

The API and the pages use the same methods. Every change is recorded with who made it.
"""

import secrets
from typing import Final

from msgspec.structs import replace

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.messages.model.messages import DeliveryNotFound, Endpoint, EndpointNotFound, SentDelivery
from frontrow.boxoffice.messages.organiser_webhooks import OrganiserWebhooks
from frontrow.boxoffice.messages.webhook_endpoints import FACTS, SECRET_BYTES
from frontrow.boxoffice.messages.webhook_secrets import EndpointSecrets
from frontrow.boxoffice.organiser.ports.ledger import OrganiserLedger
from frontrow.core.clock import Clock
from frontrow.core.errors import InvalidInput, Overloaded
from frontrow.shared.ids import Ids

MAX_PER_ORGANISER: Final = 50


class ManagedWebhooks:
    """An organiser's webhooks. Another organiser's webhook is not found."""

    def __init__(
        self,
        ledger: OrganiserLedger,
        sender: OrganiserWebhooks,
        clock: Clock,
        ids: Ids,
        endpoint_secrets: EndpointSecrets | None = None,
    ) -> None:
        self._ledger, self._sender, self._clock, self._ids = ledger, sender, clock, ids
        self._secrets = endpoint_secrets or EndpointSecrets()

    async def find(self, organiser_id: str, webhook_id: str) -> Endpoint:
        """The organiser's active webhook with this id."""
        endpoint = await self._ledger.messages.endpoint(webhook_id)
        if endpoint is None or not endpoint.active or endpoint.organiser != organiser_id:
            raise EndpointNotFound(f"there is no webhook {webhook_id[:60]}", webhook=webhook_id[:60])
        return endpoint

    async def page(self, organiser_id: str, after: str, limit: int) -> list[Endpoint]:
        """The organiser's webhooks by id, from after `after` on."""
        return await self._ledger.organiser.own_endpoints(organiser_id, after, limit)

    async def create(self, editor: Editor, event: Event, url: str, facts: list[str]) -> Endpoint:
        """Register a webhook with a new secret. It gets these facts of the event, or all when none are named."""
        unknown = sorted(set(facts) - FACTS)
        if unknown:
            raise InvalidInput(f"there is no fact {unknown[0][:60]!r}", param="facts")
        self._sender.check_url(url)
        if len(await self.page(editor.organiser_id, "", MAX_PER_ORGANISER)) >= MAX_PER_ORGANISER:
            raise Overloaded(f"an organiser has at most {MAX_PER_ORGANISER} webhooks; remove one", retry_after_s=3600)
        endpoint = Endpoint(
            self._ids.new("whk"), editor.organiser_id, event.id, url, _new_secret(), tuple(sorted(set(facts)))
        )
        await self._write(editor, endpoint, "create_webhook")
        return endpoint

    async def rotate(self, editor: Editor, webhook_id: str) -> Endpoint:
        """Give a webhook a new secret. The old one ends at once."""
        endpoint = replace(await self.find(editor.organiser_id, webhook_id), secret=_new_secret())
        await self._write(editor, endpoint, "rotate_webhook")
        return endpoint

    async def remove(self, editor: Editor, webhook_id: str) -> None:
        """Send nothing more to a webhook."""
        endpoint = replace(await self.find(editor.organiser_id, webhook_id), active=False)
        await self._write(editor, endpoint, "remove_webhook")

    async def send_test(self, editor: Editor, webhook_id: str) -> Endpoint:
        """Queue a test delivery."""
        endpoint = await self.find(editor.organiser_id, webhook_id)
        await self._sender.test(endpoint)
        detail = {"webhook": endpoint.id}
        await self._ledger.organiser.note(Change(editor, "test_webhook", endpoint.event_id, self._clock(), detail))
        return endpoint

    async def deliveries(self, endpoint: Endpoint, before: int, limit: int) -> list[SentDelivery]:
        """Deliveries to a webhook before number `before` (0: all), newest first."""
        return await self._ledger.organiser.endpoint_deliveries(endpoint, before, limit)

    async def redeliver(self, editor: Editor, webhook_id: str, delivery_id: str) -> None:
        """Send a delivery once more, from the beginning."""
        endpoint = await self.find(editor.organiser_id, webhook_id)
        number = int(delivery_id) if delivery_id.isascii() and delivery_id.isdigit() and len(delivery_id) < 19 else 0
        detail = {"webhook": endpoint.id, "delivery": number}
        change = Change(editor, "redeliver", endpoint.event_id, self._clock(), detail)
        if not number or not await self._ledger.organiser.redeliver(endpoint, number, change):
            raise DeliveryNotFound(f"this webhook has no delivery {delivery_id[:30]}", webhook=endpoint.id)

    async def _write(self, editor: Editor, endpoint: Endpoint, act: str) -> None:
        detail = {"webhook": endpoint.id, "url": endpoint.url}
        change = Change(editor, act, endpoint.event_id, self._clock(), detail)
        await self._ledger.organiser.write_endpoint(self._secrets.seal(endpoint), change)


def _new_secret() -> str:
    return f"whsec_{secrets.token_urlsafe(SECRET_BYTES)}"
