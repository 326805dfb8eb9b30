"""The nginx configuration of the examples, in a real nginx between a real room and a shop (W7)."""

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.nginx import CONF, Nginx
from tests.web.room.conftest import endpoints_of, opened
from tests.web.room.served import serving
from tests.web.room.simple_room import SimpleRoom

ROOM = "/v1/events/aurora/room"


async def shop(scope: Any, receive: Any, send: Any) -> None:
    """Tells who nginx says is there."""
    if scope["type"] == "lifespan":
        return
    told = {name.decode(): value.decode() for name, value in scope["headers"]}
    body = json.dumps({"path": scope["path"], "person": told.get("frontrow-person")}).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@dataclass
class Site:
    room: SimpleRoom
    url: str
    stop_room: Any


@pytest.fixture
def site() -> Iterator[Site]:
    room = SimpleRoom()
    servers = opened("hot", room, endpoints_of(room))
    with contextlib.ExitStack() as stack:
        server = next(servers)
        stack.callback(servers.close)
        shop_port = stack.enter_context(serving(shop, lifespan="off"))
        text = CONF.read_text().replace("127.0.0.1:8008", f"127.0.0.1:{server.port}")
        nginx = stack.enter_context(Nginx(text.replace("127.0.0.1:8000", f"127.0.0.1:{shop_port}")))
        yield Site(room, f"http://127.0.0.1:{nginx.port}", servers.close)


def browser(site: Site) -> httpx.Client:
    return httpx.Client(base_url=site.url, trust_env=False, timeout=20, headers={"Accept": "text/html"})


def test_a_person_goes_through_nginx_from_the_room_into_the_shop(site: Site) -> None:
    """W5, W7, W9."""
    with browser(site) as person:
        sent = person.get("/seats")
        assert (sent.status_code, sent.headers["location"]) == (303, f"{ROOM}/?return=/seats")
        assert "Get your place" in person.get(f"{ROOM}/?return=/seats").text
        form = {"page": "true", "wish": "/seats"}
        joined = person.post(f"{ROOM}/join", data=form)
        assert (joined.status_code, joined.headers["location"]) == (303, f"{ROOM}/?return=/seats")
        site.room.move(1)
        assert "It’s your turn" in person.get(f"{ROOM}/").text
        onward = person.post(f"{ROOM}/claim", data=form)
        assert onward.headers["location"].endswith("/seats")
        assert person.get("/seats").json() == {"path": "/seats", "person": "p1"}


def test_programs_get_a_problem_and_a_forged_person_is_replaced(site: Site) -> None:
    answer = httpx.get(f"{site.url}/seats", trust_env=False)
    assert (answer.status_code, answer.json()["code"]) == (401, "pass_required")
    for path in ("/Seats", "//seats", "/seats/../admin", "/%73eats", "/v1/events/aurora/roomx"):
        assert httpx.get(f"{site.url}{path}", trust_env=False).status_code == 401, path
    place = httpx.post(f"{site.url}{ROOM}/join", trust_env=False).json()["place"]
    site.room.move(1)
    claimed = httpx.post(
        f"{site.url}{ROOM}/claim", trust_env=False, headers={"Authorization": f"Bearer {place}"}
    ).json()
    forged = {"Authorization": f"Bearer {claimed['pass']}", "Frontrow-Person": "the queen"}
    assert httpx.get(f"{site.url}/seats", trust_env=False, headers=forged).json()["person"] == "p1"


def test_the_stream_comes_through_at_once(site: Site) -> None:
    with httpx.stream("GET", f"{site.url}{ROOM}/stream", trust_env=False, timeout=60) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: now-serving"
        assert re.match(r'data: \{"e":"aurora"', next(lines))


def test_now_serving_is_answered_from_the_cache_and_also_while_the_room_is_away(site: Site) -> None:
    """W10: any cache may carry it."""
    first = httpx.get(f"{site.url}{ROOM}/now-serving", trust_env=False)
    assert first.status_code == 200
    site.stop_room()
    deadline_s = time.monotonic() + 1.5
    while time.monotonic() < deadline_s:  # past max-age=1, so that it is the stale copy that answers
        again = httpx.get(f"{site.url}{ROOM}/now-serving", trust_env=False)
        assert (again.status_code, again.content) == (200, first.content)
        time.sleep(0.1)
    assert httpx.get(f"{site.url}/seats", trust_env=False).status_code == 500, "closed, never open by accident"
