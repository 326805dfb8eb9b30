"""The cookies of every server: `Secure` and `__Host-` where people come by https, plain on a laptop's http.

Where people come by https the plain names are not believed: a page on plain http could have planted them.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.app.room_wiring import make_endpoints
from frontrow.core.errors import Unauthorised
from frontrow.settings.room import RoomSettings
from frontrow.shared.cookie_headers import cookie_line, cookie_names, is_https, read_cookie, read_cookies
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.web.endpoints.room.page import PageSettings, RoomPages
from frontrow.web.http.messages import EndpointRequest
from frontrow.web.http.room_credentials import keeps_place, place_cookies, place_of
from tests.support.eventually import eventually
from tests.web.api.support import EVENT_ID, a_client, a_platform
from tests.web.room.simple_room import SimpleRoom

HTTPS = "https://tickets.example.org"
ROOM = f"/v1/events/{EVENT_ID}/room"
BROWSER = {"accept": "text/html", "accept-language": "en", "sec-fetch-site": "same-origin"}


def test_names_lines_and_reading() -> None:
    assert cookie_names("pass") == ("__Host-frontrow-pass", "frontrow_pass")
    assert cookie_names("place", "evt_a") == ("__Host-frontrow-place-evt_a", "frontrow_place_evt_a")
    line = cookie_line(cookie_names("pass"), "x", 60, secure=True)
    assert line == "__Host-frontrow-pass=x; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure"
    assert "Secure" not in cookie_line(cookie_names("pass"), "x", 60, secure=False)
    assert is_https("HTTPS://a.example")
    assert not is_https("http://localhost:8000")


@pytest.mark.parametrize("foreign", ['prefs={"a": [1, 2]}', "=", ";;;", "a", 'b="c;d"', "é=ü", "frontrow_pass_x=no"])
def test_another_programs_odd_cookie_hides_none_of_ours(foreign: str) -> None:
    names = cookie_names("pass")
    assert read_cookie(f"{foreign}; frontrow_pass=good; {foreign}", names) == "good"
    assert read_cookie(f"__Host-frontrow-pass=new;{foreign};frontrow_pass=old", names) == "new"
    assert read_cookies(f"frontrow_pass=old; {foreign}; __Host-frontrow-pass=new", names) == ["new", "old"]
    assert read_cookie(foreign, names) == ""
    assert read_cookie("frontrow_pass=; __Host-frontrow-pass=", names) == ""


@pytest.fixture(params=[HTTPS, "http://localhost:8000"], ids=["https", "http"])
async def visited(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[bool, httpx.AsyncClient]]:
    """A platform at a public address, and a browser there."""
    async with a_platform(tmp_path, public_url=request.param) as platform, a_client(platform) as client:
        client.base_url = httpx.URL(request.param)
        client.headers.update(BROWSER)
        yield is_https(request.param), client


async def test_every_cookie_of_a_purchase_is_bound_to_the_host_over_https(
    visited: tuple[bool, httpx.AsyncClient],
) -> None:
    secure, client = visited
    lines: dict[str, str] = {}

    def keep(answer: httpx.Response) -> httpx.Response:
        for line in answer.headers.get_list("set-cookie"):
            lines[line.partition("=")[0]] = line
        return answer

    keep(await client.get("/language/en"))
    keep(await client.post("/ready", data={"name": "Ada", "email": "ada@example.org", "back": "/"}))
    keep(await client.post(f"{ROOM}/join", data={"page": "true"}))
    assert keep(await _claim(client)).status_code == 303
    taken = keep(await client.post(f"/events/{EVENT_ID}/hold", data={"seat": "S-A-1"}))
    assert taken.status_code == 303, taken.text
    shown = keep(await client.get(taken.headers["location"]))
    assert "ada@example.org" in shown.text
    kinds = [("from", EVENT_ID), ("place", EVENT_ID), ("pass", ""), ("bookings", ""), ("ready", ""), ("lang", "")]
    assert set(lines) == {cookie_names(kind, event)[0 if secure else 1] for kind, event in kinds}
    for name, line in lines.items():
        parts = line.split("; ")
        assert ("Secure" in parts, name.startswith("__Host-")) == (secure, secure), line
        assert {"Path=/", "HttpOnly", "SameSite=Lax"} <= set(parts)
        assert not [part for part in parts if part.lower().startswith("domain")]


async def test_plain_names_prove_something_only_on_plain_http(visited: tuple[bool, httpx.AsyncClient]) -> None:
    """Issue 11: over https anybody on a sister site could plant a place, a pass or bookings under them."""
    secure, client = visited
    await client.post("/ready", data={"name": "Ada", "email": "ada@example.org", "back": "/"})
    await client.post(f"{ROOM}/join", data={"page": "true"})
    ours = _rename(client)
    assert ("ada@example.org" in (await client.get("/ready")).text) is not secure
    assert ("data-state=none" in (await client.get(f"{ROOM}/")).text) is secure
    client.cookies.update(ours)
    assert (await _claim(client)).status_code == 303
    ours = _rename(client)
    taken = await client.post(f"/events/{EVENT_ID}/hold", data={"seat": "S-A-1"})
    assert taken.headers.get("location", "").startswith("/checkout/") is not secure
    if secure:
        client.cookies.clear()
        client.cookies.update(ours)
        taken = await client.post(f"/events/{EVENT_ID}/hold", data={"seat": "S-A-1"})
    checkout = taken.headers["location"]
    assert (await client.get(checkout)).status_code == 200
    _rename(client)
    client.cookies.delete("frontrow_pass")
    assert (await client.get(checkout)).status_code == (404 if secure else 200), "the booking's own token"


async def test_giving_a_pass_back_removes_both_names(visited: tuple[bool, httpx.AsyncClient]) -> None:
    secure, client = visited
    await client.post(f"{ROOM}/join", data={"page": "true"})
    await _claim(client)
    gone = (await client.post(f"{ROOM}/give-back", json={})).headers.get_list("set-cookie")
    assert {line.partition("=")[0] for line in gone} >= set(cookie_names("pass")[0 if secure else 1 :])
    assert all("Max-Age=0" in line for line in gone)


async def _claim(client: httpx.AsyncClient) -> httpx.Response:
    """Go in; the room admits a moment after joining."""
    return await eventually(
        lambda: client.post(f"{ROOM}/claim", data={"page": "true"}), until=lambda answer: answer.status_code != 409
    )


def _rename(client: httpx.AsyncClient) -> dict[str, str]:
    """Every cookie under its plain name; answers them under their own."""
    kept = [(cookie.name, cookie.value or "") for cookie in client.cookies.jar]
    client.cookies.clear()
    for name, value in kept:
        kind, _, event = name.removeprefix("__Host-frontrow-").partition("-")
        plain = cookie_names(kind, event)[1] if name.startswith("__Host-") else name
        client.cookies.set(plain, value)
    return dict(kept)


# -- the room served alone -------------------------------------------------------------------------------------------


@pytest.fixture
def standing() -> SimpleRoom:
    return SimpleRoom()


@pytest.mark.parametrize("secure", [True, False])
async def test_the_room_alone_reads_and_writes_the_name_of_its_address(standing: SimpleRoom, secure: bool) -> None:
    pages = RoomPages(standing, EntranceLimits(), PageSettings(secure_cookies=secure))
    joined = await standing.join("aurora")
    written = dict(pages.joined("aurora", joined, is_form=True).headers())["set-cookie"]
    assert written.startswith("__Host-frontrow-" if secure else "frontrow_")
    for name in place_cookies("aurora"):
        ask = EndpointRequest([(b"cookie", f"a=b; {name}={joined.place_jwt}".encode())], b"", "127.0.0.1")
        assert keeps_place("aurora", ask, secure=secure) is (not secure or name.startswith("__Host-"))
        if keeps_place("aurora", ask, secure=secure):
            assert place_of("aurora", ask, secure=secure) == joined.place_jwt
        else:
            with pytest.raises(Unauthorised):
                place_of("aurora", ask, secure=secure)


@pytest.mark.parametrize(
    ("changes", "secure"),
    [({"public_url": HTTPS}, True), ({"secure_cookies": True}, True), ({"public_url": "http://localhost"}, False)],
)
def test_the_address_of_the_room_alone_decides(
    tmp_path: Path, standing: SimpleRoom, changes: dict[str, Any], secure: bool
) -> None:
    from tests.web.api.support import room_keys

    settings = RoomSettings(events=("aurora",), folder=str(tmp_path), **changes)
    endpoints = make_endpoints(settings, standing, room_keys()).endpoints.rooms
    assert (b"__Host-frontrow-pass=;" in endpoints.pages.forget_pass()) is secure
