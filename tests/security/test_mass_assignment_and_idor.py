"""Fields nobody may set, and ids of other people's things."""

import asyncio
import base64
from typing import Any, get_args

import msgspec
import pytest

from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.waitlist.model.offers import Offer, OfferState
from tests.boxoffice.organiser.http import a_venue_body
from tests.boxoffice.people.support import fan, mailed, member
from tests.security.route_table import table
from tests.security.world import EVENT_ID, World, bearer, pass_for

pytestmark = pytest.mark.asyncio(loop_scope="session")


def structs_in(kind: Any) -> set[type[msgspec.Struct]]:
    """The Struct and every Struct inside it."""
    found: set[type[msgspec.Struct]] = set()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        found.add(kind)
        for field in msgspec.structs.fields(kind):
            found |= structs_in(field.type)
    for part in get_args(kind):
        found |= structs_in(part)
    return found


async def test_mass_assignment_every_body_refuses_fields_it_does_not_know():
    """Generated from the route table: no body can carry a role, an owner or an id along."""
    bodies = [route for route in table() if route.body_type is not None]
    assert len(bodies) > 15
    for route in bodies:
        for kind in structs_in(route.body_type):
            assert kind.__struct_config__.forbid_unknown_fields, (route.name, kind.__name__)


TEAM = "/v1/organiser/team/invitations"
EXTRAS: list[tuple[str, str, str, dict[str, Any], str]] = [
    ("fan", "PATCH", "/v1/me/preferences", {"locale": "en"}, "fan"),
    ("fan", "PATCH", "/v1/me/preferences", {"locale": "en"}, "id"),
    ("fan", "PATCH", "/v1/me/preferences", {"locale": "en"}, "push"),
    ("owner of hall", "POST", "/v1/organiser/keys", {"name": "k", "scopes": ["door:scan"]}, "organiser_id"),
    ("owner of hall", "POST", "/v1/organiser/keys", {"name": "k", "scopes": ["door:scan"]}, "made_by"),
    (
        "owner of hall",
        "POST",
        "/v1/organiser/team/invitations",
        {"email": "x@example.org", "role": "door"},
        "organiser_id",
    ),
    ("nobody", "POST", "/v1/auth/guest", {}, "role"),
    ("nobody", "POST", "/v1/auth/invitation", {"invitation": "x", "name": "x", "password": "x"}, "role"),
    ("nobody", "POST", "/v1/auth/staff/login", {"email": "x@example.org", "password": "x"}, "stage"),
]


@pytest.mark.parametrize(("who", "method", "path", "body", "extra"), EXTRAS)
async def test_mass_assignment_over_http(world: World, who, method, path, body, extra):
    reply = await world.client.ask(method, path, world.callers()[who], body | {extra: "org_other"})
    assert reply.status == 422, (reply.status, reply.body)
    assert f"unknown field `{extra}`" in reply.json()["detail"]


async def test_an_invitation_gives_the_invited_role_whatever_the_answer_says(world: World):
    owner = world.callers()["owner of hall"]
    asked = {"email": "mass@example.org", "role": "door"}
    assert (await world.client.ask("POST", "/v1/organiser/team/invitations", owner, asked)).status == 201
    link = await mailed(world.platform, "mass@example.org")
    body = {"invitation": link, "name": "M", "password": "a sentence nobody guesses"}
    refused = await world.client.ask("POST", "/v1/auth/invitation", (), body | {"role": "owner"})
    assert refused.status == 422
    made = await world.client.ask("POST", "/v1/auth/invitation", (), body)
    assert made.json()["role"] == "door"


async def test_idor_members_keys_invitations_sessions_and_devices_of_others(world: World):
    """Every id of org_hall and of the fan, tried with everybody else's proofs: as if it did not exist."""
    platform, owner = world.platform, world.people["owner of hall"]
    headers = bearer(owner.session)
    asked = await world.client.ask(
        "POST", "/v1/organiser/team/invitations", headers, {"email": "i@example.org", "role": "door"}
    )
    made = await world.client.ask("POST", "/v1/organiser/keys", headers, {"name": "k", "scopes": ["door:scan"]})
    device = {"endpoint": "https://push.example.org/idor", "keys": {"p256dh": "x", "auth": "x"}}
    push = await world.client.ask("POST", "/v1/me/push", world.callers()["fan"], device)
    session = await platform.people.sessions.find(world.people["fan"].session)
    gatekeeper_id = world.people["door of hall"].id
    tries = [
        ("owner of other", "PATCH", f"/v1/organiser/team/{gatekeeper_id}", {"role": "owner"}),
        ("owner of other", "DELETE", f"/v1/organiser/team/{gatekeeper_id}", None),
        ("owner of other", "POST", f"/v1/organiser/team/{gatekeeper_id}/reset", {}),
        ("owner of other", "DELETE", f"/v1/organiser/team/invitations/{asked.json()['id']}", None),
        ("owner of other", "DELETE", f"/v1/organiser/keys/{made.json()['id']}", None),
        ("stranger", "DELETE", f"/v1/auth/sessions/{session.id}", None),
        ("guest", "DELETE", f"/v1/auth/sessions/{session.id}", None),
        ("owner of hall", "DELETE", f"/v1/auth/sessions/{session.id}", None),
        ("stranger", "DELETE", f"/v1/me/push/{push.json()['id']}", None),
    ]
    for who, method, path, body in tries:
        reply = await world.client.ask(method, path, world.callers()[who], body)
        assert reply.status == 404, (who, method, path, reply.status, reply.body)
    team = (await world.client.ask("GET", "/v1/organiser/team", headers)).json()
    assert gatekeeper_id in [one["id"] for one in team["members"]]
    assert asked.json()["id"] in [one["id"] for one in team["invitations"]]
    for name in ("owner of other", "key of other"):
        other = (await world.client.ask("GET", "/v1/organiser/team", world.callers()[name])).json()
        assert {one["email"].partition("@")[2] for one in other["members"]} == {"org-other.example.org"}


async def test_idor_venues_and_webhooks_of_another_organiser(world: World):
    """Every route with a venue or webhook in its path, with real ids of org_hall, asked by org_other."""
    owner = world.callers()["owner of hall"]
    venue = await world.client.ask("POST", "/v1/organiser/venues", owner, a_venue_body())
    wish = {"event": EVENT_ID, "url": "https://hooks.example.org/x"}
    hook = await world.client.ask("POST", "/v1/organiser/webhooks", owner, wish)
    assert (venue.status, hook.status) == (201, 201), (venue.body, hook.body)
    ids = {"venue_id": venue.json()["venue"], "webhook_id": hook.json()["webhook"]}
    routes = [route for route in table() if route.parameters() & ids.keys()]
    assert len(routes) >= 6
    for route in routes:
        for who in ("owner of other", "key of other"):
            reply = await world.client.ask(route.method, route.path(**ids), world.callers()[who], route.sample())
            assert reply.status == 404, (route.name, who, reply.status, reply.body)
    for path in ("/v1/organiser/venues", "/v1/organiser/webhooks", "/v1/organiser/events", "/v1/organiser/audit"):
        reply = await world.client.ask("GET", path, world.callers()["owner of other"])
        assert reply.status == 200, (path, reply.body)
        for known in (*ids.values(), EVENT_ID):
            assert known.encode() not in reply.body, path
    taken = {"event": EVENT_ID, "url": "https://hooks.example.org/y"}
    reply = await world.client.ask("POST", "/v1/organiser/webhooks", world.callers()["owner of other"], taken)
    assert reply.status == 404, reply.body


async def test_idor_an_offer_is_its_own_fans(world: World, monkeypatch):
    """Claimed and declined by its fan only, whoever learns its id."""
    offer = Offer(
        "ofr_1",
        "wle_1",
        EVENT_ID,
        world.people["fan"].id,
        world.booking,
        OfferState.OPEN,
        2**60,
        1,
        (1,),
        BookingState.HELD,
        2**60,
    )
    asked = []

    async def found(offer_id: str) -> Offer:
        asked.append(offer_id)
        return offer

    monkeypatch.setattr(world.platform.ledger.waitlist, "offer", found)
    for act in ("claim", "decline"):
        for who, headers in world.callers().items():
            if who != "fan":
                reply = await world.client.ask("POST", f"/v1/offers/{offer.id}/{act}", headers)
                assert reply.status in (401, 404), (act, who, reply.status)
        stranger = bearer(pass_for(world.platform, EVENT_ID, world.people["stranger"].id, position=78))
        assert (await world.client.ask("POST", f"/v1/offers/{offer.id}/{act}", stranger)).status == 404
    assert len(asked) > 20, "the offer was there each time"


async def test_idor_a_fan_sees_only_what_is_theirs(world: World):
    for path in ("/v1/me", "/v1/me/export", "/v1/me/bookings", "/v1/me/messages"):
        reply = await world.client.ask("GET", path, world.callers()["stranger"])
        assert world.people["fan"].id.encode() not in reply.body
        assert b"fan@example.org" not in reply.body


async def test_idempotency_keys_of_one_person_mean_nothing_to_another(world: World):
    """The same key and body from two people are two requests; from one person they are one."""
    one, two = await fan(world.platform, "idem1@example.org"), await fan(world.platform, "idem2@example.org")
    device = {"endpoint": "https://push.example.org/idem", "keys": {"p256dh": "x", "auth": "x"}}
    key = [("idempotency-key", "the same for everybody")]
    first = await world.client.ask("POST", "/v1/me/push", [*bearer(one.session), *key], device)
    again = await world.client.ask("POST", "/v1/me/push", [*bearer(one.session), *key], device)
    assert (first.status, again.header("idempotent-replayed")) == (201, "true")
    other = await world.client.ask("POST", "/v1/me/push", [*bearer(two.session), *key], device)
    assert (other.status, other.header("idempotent-replayed")) == (201, "")
    assert (await world.client.ask("POST", "/v1/me/push", key, device)).status == 401, "no replay to nobody"
    team = "/v1/organiser/team/invitations"
    body = {"email": "idem@example.org", "role": "door"}
    hall = await world.client.ask("POST", team, [*world.callers()["owner of hall"], *key], body)
    rival = await world.client.ask("POST", team, [*world.callers()["owner of other"], *key], body)
    assert hall.status == rival.status == 201
    assert hall.json()["id"] != rival.json()["id"]


async def test_idempotency_never_keeps_a_secret_that_the_ledger_s_reader_could_use(world: World):
    """Sign-ins and enrolments are not kept for a replay. The answer with an API key is sealed: a retry gets the same
    key, and whoever reads the ledger finds none."""
    headers = [*world.callers()["owner of hall"], ("idempotency-key", "secrets")]
    body = {"name": "idem", "scopes": ["door:scan"]}
    made = [(await world.client.ask("POST", "/v1/organiser/keys", headers, body)).json()["key"] for _ in range(2)]
    assert made[0] == made[1]
    folder = world.platform.settings.folder
    raw = await asyncio.to_thread(lambda: b"".join(path.read_bytes() for path in folder.glob("*.db*")))
    assert raw
    for at in range(3):  # base64 has three alignments
        assert base64.b64encode(b"-" * at + made[0].encode())[4:-4] not in raw
    assert made[0].encode() not in raw


async def test_a_member_who_was_removed_or_demoted_loses_everything_at_once(world: World):
    boss = await member(world.platform, Role.OWNER, "org_fall")
    clerk = await member(world.platform, Role.OWNER, "org_fall", name="clerk")
    made = await world.client.ask(
        "POST", "/v1/organiser/keys", bearer(clerk.session), {"name": "k", "scopes": ["team:read"]}
    )
    key = bearer(made.json()["key"])
    assert (await world.client.ask("GET", "/v1/organiser/team", key)).status == 200
    path = f"/v1/organiser/team/{clerk.id}"
    assert (await world.client.ask("PATCH", path, bearer(boss.session), {"role": "door"})).status == 200
    assert (await world.client.ask("GET", "/v1/organiser/team", bearer(clerk.session))).status == 401
    assert (await world.client.ask("GET", "/v1/organiser/team", key)).status == 401
    assert (await world.client.ask("DELETE", path, bearer(boss.session))).status == 204
