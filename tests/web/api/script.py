"""A buyer's script that knows nothing but the API's document: it finds every path by its operation id."""

import asyncio
from typing import Any

import httpx

from tests.support.eventually import eventually

TRIES = 1_200


class Buyer:
    """Walks from the waiting room to the ticket, with whatever client it is given."""

    def __init__(self, client: httpx.AsyncClient, document: dict[str, Any]) -> None:
        self.client = client
        self._paths = {
            operation["operationId"]: (method.upper(), path)
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        }
        self.headers: dict[str, str] = {}

    async def call(self, name: str, /, *, headers: dict[str, str] | None = None, **values: Any) -> httpx.Response:
        """Ask for the operation; path parameters by name, `json` and `params` as they are."""
        method, path = self._paths[name]
        more = {key: values.pop(key) for key in ("json", "params") if key in values}
        url = path.format(**values)
        return await self.client.request(method, url, headers=self.headers | (headers or {}), **more)

    async def enter(self, event: str) -> str:
        """join → status → claim: the pass."""
        joined = await self.call("room_join", event_id=event)
        assert joined.status_code == 201, joined.text
        place = {"Authorization": f"Bearer {joined.json()['place']}"}

        async def state() -> str:
            status = await self.call("room_status", event_id=event, headers=place)
            assert status.status_code == 200, status.text
            return str(status.json()["state"])

        await eventually(state, until=lambda now: now == "active", every_s=0.05)
        claimed = await self.call("room_claim", event_id=event, headers=place)
        assert claimed.status_code == 201, claimed.text
        self.headers["Frontrow-Pass"] = claimed.json()["pass"]
        return claimed.json()["pass"]

    async def hold(self, event: str, **wish: Any) -> dict[str, Any]:
        held = await self.call("place_hold", event_id=event, json=wish)
        assert held.status_code == 201, held.text
        self.headers["Frontrow-Booking"] = held.json()["booking_token"]
        return held.json()

    async def pay(self, booking: str, method: str = "pm_card_visa") -> dict[str, Any]:
        paid = await self.call("pay", booking_id=booking, json={"method": method})
        assert paid.status_code == 200, paid.text
        return paid.json()


async def read_document(client: httpx.AsyncClient) -> dict[str, Any]:
    """The API's document. A server makes it when it is first asked; a busy one may say 503 and when to ask again."""
    for _ in range(TRIES):
        answer = await client.get("/openapi.json", timeout=60)
        if answer.status_code != 503:
            break
        await asyncio.sleep(float(answer.headers["retry-after"]))
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def a_buyer(client: httpx.AsyncClient) -> Buyer:
    return Buyer(client, await read_document(client))
