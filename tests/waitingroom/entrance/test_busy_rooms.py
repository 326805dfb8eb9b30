"""`human_when = "busy"`: a served room asks for a proof only while people have to wait."""

from pathlib import Path

import httpx

from frontrow.app.room_wiring import open_rooms
from frontrow.settings.room import RoomSettings
from frontrow.web.room.app import room_app
from tests.web.room.served import serving

KEY = "organiser-key-of-the-tests"


async def test_a_quiet_room_asks_nobody_and_a_held_one_everybody(tmp_path: Path) -> None:
    networks = tmp_path / "networks.txt"
    networks.write_text("127.0.0.0/8\n")
    settings = RoomSettings(
        events=("aurora",),
        folder=str(tmp_path),
        human="altcha",
        human_when="busy",
        suspect_networks=str(networks),
        organiser_key=KEY,
    )
    opened = await open_rooms(settings)
    app = room_app(opened.endpoints, root_event="aurora")
    with serving(app, ws="none") as port:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20, trust_env=False) as client:
            assert (await client.get("/challenge")).json() == {"kind": "none"}
            assert (await client.post("/join")).status_code == 201
            headers = {"Authorization": f"Bearer {KEY}"}
            assert (await client.patch("/room", json={"action": "pause"}, headers=headers)).status_code == 200
            assert (await client.get("/challenge")).json()["maxnumber"] == 16 * settings.human_max_number
            refused = await client.post("/join")
            assert (refused.status_code, refused.json()["code"]) == (403, "human_check_failed")
            text = (await client.get("/metrics")).text
            assert 'frontrow_room_harder_work_total{reason="network"} ' in text
            assert 'frontrow_room_refusals_total{code="human_check_failed",endpoint="join"} 1.0' in text
    if opened.console is not None:
        await opened.console.aclose()
