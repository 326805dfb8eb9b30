"""Browsing over HTTP (B1) and what the skeleton of the API promises about every route."""

import pytest
from litestar import get

from frontrow.core.errors import ConfigError
from frontrow.web.api import all_routes
from frontrow.web.server import app as web_app
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event


async def test_b1_events_are_listed_found_by_words_and_paged(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        for number in range(3):
            await put_event(platform, id=f"evt_0{number}", name=f"Borealis {number}")
        listed = (await client.get("/v1/events")).json()
        assert [one["name"] for one in listed["events"]] == ["Aurora", "Borealis 0", "Borealis 1", "Borealis 2"]
        assert listed["events"][0]["from_price"] == {"amount_minor": 2000, "currency": "EUR"}
        assert listed["next"] is None
        found = (await client.get("/v1/events", params={"q": "borealis vienna", "limit": 2})).json()
        assert [one["id"] for one in found["events"]] == ["evt_00", "evt_01"]
        rest = (await client.get("/v1/events", params={"q": "borealis", "limit": 2, "cursor": found["next"]})).json()
        assert [one["id"] for one in rest["events"]] == ["evt_02"]


async def test_b1_events_are_found_by_place_time_price_and_free_seats(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        await put_event(platform, id="evt_01", name="Borealis")

        async def found(**params):
            answer = await client.get("/v1/events", params=params)
            assert answer.status_code == 200, answer.text
            return [one["name"] for one in answer.json()["events"]]

        both = await found(city="vienna", currency="EUR", max_price=2000, free=1)
        assert both == ["Aurora", "Borealis"]
        assert await found(q="bor", venue="ven_", starts_from="2020-01-01T00:00:00Z", min_price=1) == []
        starts_at = (await client.get("/v1/events")).json()["events"][0]["starts_at"]
        assert await found(q="bor", starts_from=starts_at) == ["Borealis"]
        assert await found(starts_before=starts_at) == []
        assert await found(max_price=1999) == []
        assert await found(free=1000) == []
        assert await found(city="graz") == []
        left = (await client.get("/v1/events")).json()["events"][0]["seats_left"]
        assert left == 56
        for wrong in (
            {"starts_from": "tomorrow"},
            {"currency": "euro"},
            {"free": -1},
            {"max_price": -1},
            {"cursor": "x"},
        ):
            odd = await client.get("/v1/events", params=wrong)
            assert (odd.status_code, odd.json()["param"]) == (422, next(iter(wrong)))


async def test_b1_an_event_shows_what_is_free_by_section_and_tier(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        event = (await client.get(f"/v1/events/{EVENT_ID}")).json()
    assert (event["free"], event["seats"]) == (56, 56)
    assert event["venue"]["time_zone"] == "Europe/Vienna"
    assert {"name": "B", "free": 6, "seats": 6, "price": None, "fee": None} in event["sections"]
    assert event["map_url"].endswith(".json")


async def test_errors_are_problem_json_with_a_stable_code(tmp_path):
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        missing = await client.get("/v1/events/evt_none")
        assert (missing.status_code, missing.json()["code"]) == (404, "event_not_found")
        assert missing.headers["content-type"] == "application/problem+json"
        nowhere = await client.get("/v1/nowhere")
        assert (nowhere.status_code, nowhere.json()["code"]) == (404, "not_found")
        odd = await client.get("/v1/events", params={"limit": 0})
        assert (odd.status_code, odd.json()["code"]) == (422, "invalid_input")
        assert odd.json()["param"] == "limit"


def test_a_route_without_access_stops_the_start(monkeypatch):
    @get("/v1/open-door", operation_id="open_door")
    async def handler() -> None: ...

    monkeypatch.setattr(all_routes, "ROUTES", [handler])
    with pytest.raises(ConfigError, match="/v1/open-door declares no access"):
        web_app.routes()
