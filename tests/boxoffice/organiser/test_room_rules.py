"""The waiting room and the tickets of each event as its organiser chose them: over HTTP, on every server, with defaults
from the settings; and what can still be changed once the event is published."""

import asyncio
import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.events.model.events import Event
from frontrow.boxoffice.events.model.published_changes import FIXED
from frontrow.boxoffice.events.model.room_rules import HUMAN_CHECKS, Lane, RoomRules, check_rules
from frontrow.boxoffice.tickets.ticket_codes import read_code
from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.credentials.now_serving import check_fits
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.web.platform.event_rooms import room_changes
from frontrow.web.server.app import run_platform
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, an_organiser_api, at, draft, join, patched
from tests.boxoffice.organiser.support import ADA
from tests.boxoffice.people.support import fan
from tests.support.eventually import eventually
from tests.web.api.support import settings_for

HOUR_S = 3600


async def test_w6_an_event_says_how_its_room_is_run_and_the_settings_fill_in_the_rest(tmp_path):
    """Rotating codes, lanes, depth, human check, presale and one place per person: per event, over the API."""
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api)
        found = await api.get(f"{EVENTS}/{event}")
        assert found["room"] == {
            "lanes": [{"name": "general", "weight": 1}],
            "depth_cap": 0,
            "human": "altcha",
            "one_place_per_person": False,
        }
        assert (found["rotating_codes"], found["presale_starts_at"]) == (False, None)
        rules = {
            "lanes": [{"name": "general", "weight": 1}, {"name": "fans", "weight": 3}],
            "depth_cap": 500,
            "human": "none",
            "one_place_per_person": True,
        }
        changed = await patched(api, event, room=rules, rotating_codes=True)
        assert (changed["room"], changed["rotating_codes"]) == (rules, True)
        await api.post(f"{EVENTS}/{event}/publish")
        config = api.platform.room.service.control.view(event).state.config
        assert [(lane.name, lane.weight) for lane in config.lanes] == [("general", 1), ("fans", 3)]
        assert (config.depth_cap, config.one_place_per_person, config.codes_until_us) == (500, True, 0)
        assert api.platform.server.limiter.kind_of(event) == "none"
        other = api.platform.room.service.control.view(api.event).state.config
        assert (len(other.lanes), other.depth_cap, api.platform.server.limiter.kind_of(api.event)) == (1, 0, "altcha")


async def test_w6_what_cannot_be_is_refused_by_its_name(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api)
        lanes = [{"name": "a"}, {"name": "a"}]
        assert (await patched(api, event, 422, room={"lanes": lanes}))["param"] == "lanes"
        refused = await patched(api, event, 422, room={"human": "turnstile"})
        assert refused["param"] == "human"
        assert "none, altcha" in refused["detail"]
        for bad in ({"lanes": [{"name": str(n)} for n in range(3)]}, {"depth_cap": -1}, {"unknown": 1}):
            await patched(api, event, 422, room=bad)
        late = at(api.platform, HOUR_S)
        assert (await patched(api, event, 422, presale_starts_at=late))["param"] == "presale_starts_at"


async def test_b13_once_published_what_people_joined_or_bought_by_is_fixed_with_a_reason(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        soon, later = at(api.platform, HOUR_S), at(api.platform, 2 * HOUR_S)
        event = await draft(api, sale_starts_at=later)
        await patched(api, event, presale_starts_at=soon)
        await patched(api, event, presale_starts_at=None)
        assert (await api.get(f"{EVENTS}/{event}"))["presale_starts_at"] is None
        await patched(api, event, presale_starts_at=soon)
        await api.post(f"{EVENTS}/{event}/publish")
        lanes = [{"name": "general"}, {"name": "other"}]
        for what, change in {
            "rotating_codes": {"rotating_codes": True},
            "one_place_per_person": {"room": {"one_place_per_person": True}},
            "lanes": {"room": {"lanes": lanes}},
            "presale": {"presale_starts_at": None},
        }.items():
            refused = await patched(api, event, 409, **change)
            assert refused["code"] == "fixed_once_published"
            assert FIXED[what] in refused["detail"]
        weighted = [{"name": "general", "weight": 2}, {"name": "presale", "weight": 5}]
        await patched(api, event, room={"lanes": weighted, "depth_cap": 9, "human": "altcha"})
        await patched(api, event, presale_starts_at=at(api.platform, HOUR_S + 60))
        config = api.platform.room.service.control.view(event).state.config
        assert ([lane.weight for lane in config.lanes], config.depth_cap) == ([2, 5], 9)
        assert api.platform.server.limiter.kind_of(event) == "altcha"
        await patched(api, event, room={"human": "none"})
        assert api.platform.server.limiter.kind_of(event) == "none"
        await patched(api, event, presale_starts_at=at(api.platform, -60))
        moved = await patched(api, event, 409, presale_starts_at=at(api.platform, 60))
        assert FIXED["presale_starts_at"] in moved["detail"]


async def test_b13_a_change_while_running_reaches_the_other_server(tmp_path, redis_url, postgres_ledger_url):
    stores = {"redis_url": redis_url, "postgres_url": postgres_ledger_url}
    async with an_organiser_api(tmp_path, **stores) as api, contextlib.AsyncExitStack() as stack:
        (tmp_path / "other").mkdir()
        other = await stack.enter_async_context(open_platform(settings_for(tmp_path / "other", **stores)))
        await stack.enter_async_context(run_platform(other))
        event = await draft(api)
        await api.post(f"{EVENTS}/{event}/publish")
        await eventually(lambda: event in other.box_office.openings)
        await asyncio.gather(
            patched(api, event, room={"depth_cap": 77, "human": "altcha"}),
            api.ask("PATCH", f"{EVENTS}/{event}/room", json={"rate_per_s": 5, "message": "hello"}),
        )
        await eventually(lambda: other.room.service.control.view(event).state.config.depth_cap == 77)
        await eventually(lambda: other.server.limiter.kind_of(event) == "altcha")
        config = other.room.service.control.view(event).state.config
        assert (config.rate_per_s, config.message) == (5, "hello"), "neither change was lost"


async def test_w12_in_a_presale_only_people_with_a_code_join_and_buy(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api, sale_starts_at=at(api.platform, HOUR_S))
        await patched(api, event, presale_starts_at=at(api.platform, -HOUR_S))
        await api.post(f"{EVENTS}/{event}/publish")
        refused = await join(api, event)
        assert (refused.status_code, refused.json()["code"]) == (403, "code_needed")
        assert refused.json()["general_sale_at_s"] > api.platform.clock() // 1_000_000
        known = await api.platform.ledger.catalogue.event(event)
        batch = await api.platform.organiser.codes.make(ADA, known, "presale", 2)
        code, late = api.platform.organiser.codes.texts(known, batch)
        joined = await join(api, event, code=code)
        assert (joined.status_code, joined.json()["lane"]) == (201, "presale")
        assert (await join(api, event, code=code)).json()["code"] == "code_used"
        bought = OrganiserApi(api.platform, api.client, api.person, event)
        assert (await bought.bought("S-A-1")).state == "confirmed"  # before the general sale
        assert (await api.client.get(f"/events/{event}")).status_code == 200
        await patched(api, event, sale_starts_at=at(api.platform, -1))
        assert (await join(api, event)).json()["lane"] == "general"
        assert (await join(api, event, code=late)).json()["code"] == "code_over"


async def test_w8_where_everybody_has_one_place_guests_and_strangers_must_sign_in(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api)
        await patched(api, event, room={"one_place_per_person": True})
        await api.post(f"{EVENTS}/{event}/publish")
        assert (await join(api, event)).json()["code"] == "person_needed"
        guest = (await api.client.post("/v1/auth/guest", json={})).json()
        bearer = {"Authorization": f"Bearer {guest['session']}"} if "session" in guest else {}
        if bearer:
            assert (await join(api, event, bearer)).json()["code"] == "person_needed"
        ada = await fan(api.platform, "ada@example.org")
        places = [(await join(api, event, ada.bearer)).json()["position"] for _ in range(3)]
        assert len(set(places)) == 1
        bob = await fan(api.platform, "bob@example.org")
        assert (await join(api, event, bob.bearer)).json()["position"] != places[0]


@pytest.mark.parametrize("rotating", [False, True])
async def test_b10_each_event_says_whether_its_tickets_codes_change(tmp_path, rotating):
    async with an_organiser_api(tmp_path) as api:
        event = await draft(api)
        await patched(api, event, rotating_codes=rotating)
        await api.post(f"{EVENTS}/{event}/publish")
        shop = OrganiserApi(api.platform, api.client, api.person, event)
        (code,) = await shop.codes(await shop.bought("S-A-1"))
        assert read_code(code).rotating is rotating
        (other,) = await api.codes(await api.bought("S-A-1"))
        assert not read_code(other).rotating


lanes_of = st.lists(st.builds(Lane, st.text(max_size=40), st.integers(-1, 1_001)), min_size=0, max_size=3).map(tuple)
rules_of = st.builds(
    RoomRules,
    st.none() | lanes_of,
    st.none() | st.integers(-1, 10**10),
    st.sampled_from((None, *HUMAN_CHECKS, "x")),
    st.none() | st.booleans(),
)


@given(rules_of, st.booleans())
def test_rules_that_are_accepted_always_make_a_room(rules, presale):
    """Nothing that an organiser may save can keep a room from opening."""
    refused = ""
    try:
        check_rules(rules)
    except InvalidInput as error:
        refused = error.param or "nothing"
    if refused:
        assert refused in ("lanes", "depth_cap", "human")
        return
    event = Event("evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E4", "A", "v", "p", "EUR", 4, 3, 5, (), room=rules)
    if presale:
        event = replace(event, presale_starts_at_us=2)
    config = RoomConfig().changed(**room_changes(event, RoomRules()))
    check_fits(event.id, config)
    assert RoomConfig.from_json(config.to_json()) == config
    assert bool(config.codes_until_us) is presale
    assert len(config.lanes) == 2 or not presale
