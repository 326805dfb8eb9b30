"""`human_when = "busy"`, the default: a served room asks for a proof only while more people come than it admits."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.app.room_wiring import open_rooms
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.entrance.human_check import ProofOfWork
from frontrow.web.room.app import room_app
from tests.support.eventually import eventually
from tests.web.room.served import serving

KEY = "organiser-key-of-the-tests"
ORGANISER = {"Authorization": f"Bearer {KEY}"}
FORM = {"accept": "text/html"}
PLAIN = {"page": "true", "proof": "", "code": ""}


@contextlib.asynccontextmanager
async def a_room(tmp_path: Path, **given: Any) -> AsyncIterator[tuple[RoomSettings, httpx.AsyncClient]]:
    """A served room with the settings as they come, but for those given."""
    settings = RoomSettings(events=("aurora",), folder=str(tmp_path), organiser_key=KEY, **given)
    opened = await open_rooms(settings)
    app = room_app(opened.endpoints, root_event="aurora")
    with serving(app, ws="none") as port:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
            yield settings, client
    if opened.console is not None:
        await opened.console.aclose()


async def changed(client: httpx.AsyncClient, **settings: Any) -> None:
    assert (await client.patch("/room", json=settings, headers=ORGANISER)).status_code == 200


async def test_a_quiet_room_asks_nobody_and_a_held_one_everybody(tmp_path: Path) -> None:
    networks = tmp_path / "networks.txt"
    networks.write_text("127.0.0.0/8\n")
    async with a_room(tmp_path, suspect_networks=str(networks)) as (settings, client):
        assert (settings.human, settings.human_when) == ("altcha", "busy"), "the defaults"
        assert (await client.get("/challenge")).json() == {"kind": "none"}
        assert (await client.post("/join")).status_code == 201
        await changed(client, action="pause")
        assert (await client.get("/challenge")).json()["maxnumber"] == 16 * settings.human_max_number
        refused = await client.post("/join")
        assert (refused.status_code, refused.json()["code"]) == (403, "human_check_failed")
        text = (await client.get("/metrics")).text
        assert 'frontrow_room_harder_work_total{reason="network"} ' in text
        assert 'frontrow_room_refusals_total{code="human_check_failed",endpoint="join"} 1.0' in text


async def test_people_whom_the_next_slide_takes_along_are_not_asked_and_those_behind_them_are(tmp_path: Path) -> None:
    """Ten join between two slides, and one too many for the shop is what makes a room busy."""
    async with a_room(tmp_path, capacity=10, window_size=10, interval_s=5.0) as (_, client):
        assert [(await client.post("/join")).status_code for _ in range(10)] == [201] * 10
        refused = await client.post("/join")
        assert (refused.status_code, refused.json()["code"]) == (403, "human_check_failed")
        assert (await client.get("/challenge")).json()["kind"] == "altcha"
        await changed(client, capacity=1_000, interval_us=100_000)

        async def is_quiet() -> bool:
            return bool((await client.get("/challenge")).json() == {"kind": "none"})

        await eventually(is_quiet)
        assert (await client.post("/join")).status_code == 201


async def test_browsers_without_scripts_join_a_busy_room_by_its_form_as_far_as_their_address_may(
    tmp_path: Path,
) -> None:
    async with a_room(tmp_path, capacity=0) as (_, client):
        page = await client.get("/", headers=FORM)
        assert "needs JavaScript" not in page.text
        for _ in range(3):
            joined = await client.post("/join", headers=FORM, data=PLAIN)
            assert joined.status_code == 303, joined.text
            client.cookies.clear()
        refused = await client.post("/join", headers=FORM, data=PLAIN)
        assert refused.status_code == 429
        program = await client.post("/join", json={"page": True})
        assert program.json()["code"] == "human_check_failed", "a program can compute"
        wrong = await client.post("/join", data=PLAIN | {"proof": "made up"})
        assert wrong.json()["code"] == "human_check_failed", "a wrong proof is not no proof"
        text = (await client.get("/metrics")).text
        assert "frontrow_room_joins_without_scripts_total 3.0" in text
        assert 'frontrow_room_refusals_total{code="rate_limited",endpoint="join"} 1.0' in text


async def test_a_form_of_another_site_joins_nobody(tmp_path: Path) -> None:
    async with a_room(tmp_path, capacity=0) as (_, client):
        sent = await client.post("/join", headers={"sec-fetch-site": "cross-site"}, data=PLAIN)
        assert (sent.status_code, sent.json()["code"]) == (403, "forbidden")


@pytest.mark.parametrize("when", ["busy", "always"])
async def test_a_check_of_a_provider_is_on_the_page_only_while_a_join_needs_it(tmp_path: Path, when: str) -> None:
    keys = {"human": "recaptcha", "human_site_key": "site-key", "human_secret": "secret", "human_when": when}
    async with a_room(tmp_path, **keys) as (_, client):
        for busy in (False, True):
            if busy:
                await changed(client, action="queue_all")
            page = await client.get("/", headers=FORM)
            shown = busy or when == "always"
            assert ('data-sitekey="site-key"' in page.text) is shown
            assert ("needs JavaScript" in page.text) is shown
            assert ("https://www.google.com/recaptcha/" in page.headers["content-security-policy"]) is shown
            assert ((await client.get("/challenge")).json()["kind"] == "recaptcha") is shown
            plain = await client.post("/join", headers=FORM, data=PLAIN)
            assert plain.status_code == (403 if shown else 303), "a provider's check has no way around it"


def test_a_proof_of_work_is_the_check_that_costs_nobody_a_key() -> None:
    assert RoomSettings(events=("aurora",)).human == ProofOfWork.name
