"""Venues and events over HTTP (B13): made, changed over the version that was read, published, paused, cancelled."""

import asyncio
from collections import Counter

import httpx
import pytest

from frontrow.boxoffice.people.model.roles import ROLES, Role
from frontrow.boxoffice.refunds.event_cancellation import SURE_US, WORK_CLAIM_US, EventCancellations
from tests.boxoffice.organiser.http import EVENTS, a_venue_body, an_event_body, an_organiser_api
from tests.boxoffice.people.support import api_key, opened
from tests.support.eventually import eventually


async def test_b13_from_a_venue_to_a_published_event_that_this_server_sells(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        venue = await api.post("/v1/organiser/venues", 201, json=a_venue_body())
        assert venue["seats"] == 56
        plan = await api.get(f"/v1/organiser/venues/{venue['venue']}/plan")
        assert plan["tiers"] == ["front", "back", "standing"]
        made = await api.ask("POST", EVENTS, json=an_event_body(venue["venue"], tiers=[]))
        assert made.status_code == 201, made.text
        event, tag = made.json()["event"], made.headers["etag"]
        assert made.json()["starts_at"] == "2099-06-01T18:00:00Z"
        assert (await api.client.get(f"/v1/events/{event}")).status_code == 404  # a draft
        unpriced = await api.ask("POST", f"{EVENTS}/{event}/publish")
        assert (unpriced.status_code, unpriced.json()["param"]) == (422, "tiers")
        body = {
            "tiers": an_event_body("")["tiers"],
            "fees": [{"name": "Service", "per_seat_minor": 150}],
            "max_per_person": 4,
            "hold_s": 120,
            "withheld": ["S-A-1"],
            "refunds": {"window_s": 3600},
            "ends_at": "2099-06-01T23:00:00+02:00",
            "description": "Live",
        }
        changed = await api.ask("PATCH", f"{EVENTS}/{event}", json=body, headers={"if-match": tag})
        assert changed.status_code == 200, changed.text
        assert changed.json()["withheld"] == ["S-A-1"]
        assert changed.json()["refunds"]["window_s"] == 3600
        stale = await api.ask("PATCH", f"{EVENTS}/{event}", json={"name": "Late"}, headers={"if-match": tag})
        assert (stale.status_code, stale.json()["code"]) == (412, "changed_meanwhile")
        published = await api.post(f"{EVENTS}/{event}/publish")
        assert published["status"] == "on_sale"
        twice = await api.ask("POST", f"{EVENTS}/{event}/publish")
        assert (twice.status_code, twice.json()["status"], twice.json()["code"]) == (409, 409, "event_move_refused")
        shown = (await api.client.get(f"/v1/events/{event}")).json()
        assert (shown["free"], shown["max_per_person"], shown["hold_s"]) == (55, 4, 120)
        assert {one["event"] for one in (await api.get(EVENTS))["events"]} == {event, api.event}
        acts = [one["act"] for one in (await api.get("/v1/organiser/audit", params={"event": event}))["changes"]]
        assert acts == ["publish_event", "change_event", "create_event"]


BAD_BODIES = [
    ({"name": ""}, "name"),
    ({"currency": "€"}, "currency"),
    ({"starts_at": "tomorrow"}, "starts_at"),
    ({"starts_at": "2099-06-01T20:00:00"}, "starts_at"),
    ({"sale_ends_at": "2001-01-01T00:00:00Z"}, "sale_ends_at"),
    ({"max_per_person": 1000}, "max_per_person"),
    ({"withheld": ["nowhere"]}, "withheld"),
    ({"venue": "ven_x"}, "venue"),
    ({"tiers": [{"key": "front", "amount_minor": -1}]}, "tiers"),
]


async def test_b13_a_body_that_cannot_be_right_names_the_field_and_nothing_else_is_taken(tmp_path):
    """Also mass assignment: the status, the organiser and the plan are nobody's to set."""
    async with an_organiser_api(tmp_path) as api:
        venue = (await api.post("/v1/organiser/venues", 201, json=a_venue_body()))["venue"]
        for change, param in BAD_BODIES:
            refused = await api.ask("POST", EVENTS, json=an_event_body(venue) | change)
            assert refused.status_code == 422, refused.text
            assert param in refused.json().get("param", "") + refused.json()["detail"]
        for field in ("status", "organiser_id", "plan_hash", "id", "paused"):
            refused = await api.ask("POST", EVENTS, json=an_event_body(venue) | {field: "x"})
            assert refused.status_code == 422, (field, refused.text)
        assert len((await api.get(EVENTS))["events"]) == 1


async def test_b13_pause_and_resume_reach_the_sale_and_every_other_server(tmp_path, redis_url, postgres_ledger_url):
    """Two servers on one Redis and PostgreSQL: what one is told, the other knows after its next look."""
    stores = {"redis_url": redis_url, "postgres_url": postgres_ledger_url}
    async with an_organiser_api(tmp_path / "one", **stores) as api, opened(tmp_path / "two", **stores) as other:
        await other.box_office.openings.refresh()
        assert other.box_office.sales.get(api.event).event.paused is False
        assert (await api.post(f"{EVENTS}/{api.event}/pause"))["paused"] is True
        assert api.platform.box_office.sales.get(api.event).event.paused is True
        await other.box_office.openings.refresh()
        assert other.box_office.sales.get(api.event).event.paused is True
        assert (await api.post(f"{EVENTS}/{api.event}/resume"))["paused"] is False


async def test_b13_the_same_idempotency_key_makes_one_event_and_one_venue(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        key = {"idempotency-key": "once"}
        first = await api.ask("POST", "/v1/organiser/venues", json=a_venue_body(), headers=key)
        again = await api.ask("POST", "/v1/organiser/venues", json=a_venue_body(), headers=key)
        assert first.json() == again.json()
        assert again.headers["idempotent-replayed"] == "true"
        other = await api.ask("POST", "/v1/organiser/venues", json=a_venue_body(name="B"), headers=key)
        assert other.status_code == 409
        assert len((await api.get("/v1/organiser/venues"))["venues"]) == 1


def is_no_longer_running(answer: httpx.Response) -> bool:
    """Whether the first request with this key has ended."""
    return (answer.status_code, answer.json().get("code")) != (409, "idempotency_running")


async def test_b13_a_deadline_at_any_moment_makes_no_second_event(tmp_path):
    """The server gives up waiting (as at its deadline) after ever more steps. The same key then leads to one event."""
    async with an_organiser_api(tmp_path) as api:
        venue = (await api.post("/v1/organiser/venues", 201, json=a_venue_body()))["venue"]
        for steps in range(0, 240, 20):
            ask = {"json": an_event_body(venue, name=f"Show {steps}"), "headers": {"idempotency-key": f"key-{steps}"}}
            given_up = asyncio.create_task(api.ask("POST", EVENTS, **ask))
            for _ in range(steps):
                await asyncio.sleep(0)
            given_up.cancel()
            await asyncio.gather(given_up, return_exceptions=True)
            again = await eventually(lambda ask=ask: api.ask("POST", EVENTS, **ask), until=is_no_longer_running)
            assert again.status_code == 201, again.text
        names = Counter(one["name"] for one in (await api.get(f"{EVENTS}?limit=100"))["events"])
        assert {name: names[name] for name in names if name.startswith("Show") and names[name] != 1} == {}
        assert sum(name.startswith("Show") for name in names) == 12


async def test_b13_of_fifty_changes_from_one_version_one_is_made(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        read = await api.ask("GET", f"{EVENTS}/{api.event}")
        tag = {"if-match": read.headers["etag"]}
        asks = [api.ask("PATCH", f"{EVENTS}/{api.event}", json={"name": f"N{n}"}, headers=tag) for n in range(50)]
        statuses = [answer.status_code for answer in await asyncio.gather(*asks)]
        assert sorted(set(statuses)) == [200, 412]
        assert statuses.count(200) == 1


async def test_b12_cancelling_gives_everybody_their_money_back_and_says_how_far_it_is(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        paid = [await api.bought(f"S-B-{n}", fan=f"fan_{n}") for n in range(1, 6)]
        held = await api.bought("S-C-1", fan="fan_h", pay="")
        path = f"{EVENTS}/{api.event}"
        assert (await api.ask("GET", f"{path}/cancellation")).status_code == 404
        begun = await api.post(f"{path}/cancel", 202)
        assert (begun["state"], begun["refunded"]) == ("running", 0)
        assert await api.platform.organiser.cancelling.work() == 1
        done = await api.get(f"{path}/cancellation")
        assert (done["state"], done["refunded"], done["released"], done["failed"]) == ("running", 5, 1, 0)
        clock = api.platform.clock
        later = EventCancellations(
            api.platform.ledger.organiser, api.platform.box_office.refunds, lambda: clock() + SURE_US
        )
        assert await later.work() == 1, "until no hold can be alive"
        done = await api.get(f"{path}/cancellation")
        assert (done["state"], done["refunded"], done["released"], done["failed"]) == ("done", 5, 1, 0)
        states = [(await api.platform.ledger.booking(one.id)).state.value for one in [*paid, held]]
        assert states == ["refunded"] * 5 + ["cancelled"]
        assert (await api.post(f"{path}/cancel", 202))["state"] == "done"
        assert await api.platform.organiser.cancelling.work() == 0
        assert (await api.ask("PATCH", path, json={"name": "Back"})).status_code == 409


async def test_b12_a_cancellation_that_died_half_way_is_resumed_by_whoever_looks_next(tmp_path):
    """F5: the server that claimed the job dies after a page; the claim ends, another goes on, nothing is done twice."""
    async with an_organiser_api(tmp_path) as api:
        bookings = [await api.bought(f"S-B-{n}", fan=f"fan_{n}") for n in range(1, 8)]
        await api.post(f"{EVENTS}/{api.event}/cancel", 202)
        ledger, clock = api.platform.ledger, api.platform.clock

        class Dies:
            async def cancel_event(self, event_id, *, page=2):
                rounds = api.platform.box_office.refunds.cancel_event(event_id, page=2)
                yield await anext(rounds)
                await rounds.aclose()
                raise RuntimeError("killed")

        with pytest.raises(RuntimeError):
            await EventCancellations(ledger.organiser, Dies(), clock).work()
        half = await ledger.organiser.cancellation(api.event)
        assert (half.state, half.refunded) == ("running", 2)
        assert await api.platform.organiser.cancelling.work() == 0  # the dead one's claim still stands
        later = EventCancellations(
            ledger.organiser, api.platform.box_office.refunds, lambda: clock() + WORK_CLAIM_US + 1
        )
        assert await later.work() == 1
        done = await ledger.organiser.cancellation(api.event)
        assert (done.state, done.refunded, done.failed) == ("done", 7, 0)
        refunds = [await ledger.payments.refunds_of(one.id) for one in bookings]
        assert [len(one) for one in refunds] == [1] * 7


# Organiser and gate routes with the permission each needs: (method, path, permission, body). That no route is forgotten
# anywhere is tests/security/test_authorisation_matrix.py's.
PRESALE = {"opens_at": "2030-01-01T10:00:00Z", "closes_at": "2030-01-02T10:00:00Z", "codes": 5}
ROUTES = [
    ("GET", "/v1/organiser/venues", "events:read", None),
    ("POST", "/v1/organiser/venues", "events:write", {"name": "H", "plan": {"csv": "section,row,seat\nA,1,1\n"}}),
    ("GET", "/v1/organiser/venues/ven_x", "events:read", None),
    ("PATCH", "/v1/organiser/venues/ven_x", "events:write", {}),
    ("GET", "/v1/organiser/venues/ven_x/plan", "events:read", None),
    ("GET", EVENTS, "events:read", None),
    ("POST", EVENTS, "events:write", {}),
    ("GET", f"{EVENTS}/EVENT", "events:read", None),
    ("PATCH", f"{EVENTS}/EVENT", "events:write", {}),
    *[("POST", f"{EVENTS}/EVENT/{act}", "sales:control", None) for act in ("publish", "pause", "resume")],
    ("GET", f"{EVENTS}/EVENT/cancellation", "events:read", None),
    ("GET", f"{EVENTS}/EVENT/room", "figures:read", None),
    ("PATCH", f"{EVENTS}/EVENT/room", "sales:control", {}),
    ("GET", f"{EVENTS}/EVENT/waitlist", "bookings:read", None),
    ("PUT", f"{EVENTS}/EVENT/waitlist/rules", "events:write", {"order": "fifo"}),
    ("GET", f"{EVENTS}/EVENT/bookings", "bookings:read", None),
    ("GET", f"{EVENTS}/EVENT/bookings/bkg_x", "bookings:read", None),
    ("POST", f"{EVENTS}/EVENT/bookings/bkg_x/refunds", "refunds:write", {}),
    ("GET", f"{EVENTS}/EVENT/failed-refunds", "bookings:read", None),
    ("POST", f"{EVENTS}/EVENT/bookings/bkg_x/refunds/rfd_x/retry", "refunds:write", {}),
    ("POST", f"{EVENTS}/EVENT/bookings/bkg_x/reseat", "refunds:write", {"leave": ["S-A-1"], "to": ["S-A-2"]}),
    (
        "POST",
        f"{EVENTS}/EVENT/bookings/bkg_x/transfers",
        "refunds:write",
        {"seat": "S-A-1", "email": "bob@example.org"},
    ),
    *[
        ("GET", f"{EVENTS}/EVENT/figures{part}", "figures:read", None)
        for part in ("", ".csv", "/series", "/series.csv")
    ],
    ("GET", f"{EVENTS}/EVENT/figures/poll", "figures:read", None),
    ("GET", "/v1/organiser/audit", "audit:read", None),
    ("GET", "/v1/organiser/webhooks", "webhooks:write", None),
    ("POST", "/v1/organiser/webhooks", "webhooks:write", {"event": "EVENT", "url": "https://h.example.org/"}),
    ("POST", "/v1/organiser/webhooks/whk_x/rotate", "webhooks:write", None),
    ("DELETE", "/v1/organiser/webhooks/whk_x", "webhooks:write", None),
    ("GET", "/v1/organiser/webhooks/whk_x/deliveries", "webhooks:write", None),
    ("POST", "/v1/organiser/webhooks/whk_x/deliveries/1/redeliver", "webhooks:write", None),
    ("GET", f"{EVENTS}/EVENT/codes", "codes:write", None),
    ("POST", f"{EVENTS}/EVENT/codes", "codes:write", {"csv": "code,lane\n"}),
    ("GET", f"{EVENTS}/EVENT/presale", "codes:write", None),
    ("PUT", f"{EVENTS}/EVENT/presale", "codes:write", PRESALE),
    ("POST", f"{EVENTS}/EVENT/presale/draw", "codes:write", {}),
    ("GET", f"{EVENTS}/EVENT/presale/registrations.csv", "codes:write", None),
    ("GET", "/v1/organiser/seller", "events:read", None),
    ("PUT", "/v1/organiser/seller", "events:write", {"name": "Aurora Ltd", "address": "1 High Street"}),
    ("GET", "/v1/door/events/EVENT/bundle", "door:scan", None),
    ("POST", "/v1/door/events/EVENT/scan", "door:scan", {"code": "x", "gate": "n"}),
    ("POST", "/v1/door/events/EVENT/sync", "door:scan", {"scans": []}),
    ("GET", "/v1/door/events/EVENT/duplicates", "door:scan", None),
    ("GET", "/v1/door/events/EVENT/counts", "door:scan", None),
    ("GET", "/v1/door/events/EVENT/revocations", "door:scan", None),
    ("GET", "/v1/door/events/EVENT/admissions", "door:scan", None),
    ("POST", "/v1/door/events/EVENT/undo", "door:scan", {"ticket": "tkt_x", "scan": "n:tkt_x:1"}),
]


async def test_every_route_lets_each_role_in_or_not_by_the_one_table(tmp_path):
    """Every role, a key with one scope, another organiser's owner and nobody, on every organiser and gate route."""
    async with an_organiser_api(tmp_path) as api:
        roles = [await api.as_(role, name=f"x{role.value}") for role in Role]
        stranger = await api.as_(Role.OWNER, "org_other")
        key = await api_key(api.platform, api.person, ["figures:read"])
        for method, path, permission, body in ROUTES:
            path = path.replace("EVENT", api.event)
            more = {} if body is None else {"json": {k: api.event if v == "EVENT" else v for k, v in body.items()}}
            for one in roles:
                status = (await one.ask(method, path, **more)).status_code
                allowed = permission in ROLES[Role(one.person.role)]
                assert (status != 403) == allowed, (method, path, one.person.role, status)
                assert status < 500, (method, path, status)
            bearer = {"authorization": f"Bearer {key}"}
            by_key = (await api.client.request(method, path, headers=bearer, **more)).status_code
            assert (by_key != 403) == (permission == "figures:read"), (method, path, by_key)
            assert (await api.client.request(method, path, **more)).status_code == 401, (method, path)
            if api.event in path:
                assert (await stranger.ask(method, path, **more)).status_code == 404, (method, path)
