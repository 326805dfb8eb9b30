"""JSON nested thousands of levels deep or not in UTF-8, wherever strangers' JSON is read: refused, never a 500."""

import base64

import pytest

from tests.security.route_table import Route, table
from tests.security.world import EVENT_ID, World, bearer

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEVELS = 4_500
DEEP = b"[" * LEVELS + b"]" * LEVELS


def deep_bodies(route: Route) -> list[bytes]:
    """Deep as a whole, in an unknown field, and in each field that takes anything."""
    names = getattr(route.body_type, "__struct_fields__", ())
    return [DEEP, b'{"x":"\xff"}', b'{"x":%b}' % DEEP, *(b'{"%b":{"x":%b}}' % (name.encode(), DEEP) for name in names)]


async def test_a_deep_body_is_refused_by_every_route_that_reads_one(world: World) -> None:
    found = [route for route in table() if route.body_type is not None and route.unsafe]
    assert len(found) > 15
    for route in found:
        kind = "owner of hall" if "staff" in route.access else "fan"
        headers = [*bearer(world.people[kind].session), ("frontrow-pass", world.pass_jwt)]
        values = {"event_id": EVENT_ID, "booking_id": world.booking}
        for body in deep_bodies(route):
            reply = await world.client.ask(route.method, route.path(**values), headers, body)
            assert 400 <= reply.status < 500, (route.name, body[:40], reply.status, reply.body)


async def test_deep_tokens_and_proofs_are_refused(world: World) -> None:
    text = base64.urlsafe_b64encode(b'{"alg":%b}' % DEEP).decode().rstrip("=")
    signature = base64.urlsafe_b64encode(bytes(64)).decode().rstrip("=")
    head = world.pass_jwt.partition(".")[0]
    for token in (f"{text}.{text}.{signature}", f"{head}.{text}.{signature}", text, f"fan_{text}"):
        for method, path in (
            ("POST", f"/v1/events/{EVENT_ID}/holds"),
            ("GET", f"/v1/events/{EVENT_ID}/room/status"),
            ("POST", f"/v1/events/{EVENT_ID}/room/claim"),
            ("GET", "/v1/me"),
            ("GET", f"/v1/bookings/{world.booking}"),
        ):
            body = {"best": {"count": 1}} if path.endswith("holds") else {"proof": text[:8_000]}
            reply = await world.client.ask(method, path, bearer(token), body if method == "POST" else None)
            assert 400 <= reply.status < 500, (path, reply.status, reply.body)
