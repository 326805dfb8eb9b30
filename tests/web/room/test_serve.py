"""`frontrow room serve` as a stranger meets it: real processes, killed, restarted, their Redis wiped (W13, F1, F5)."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from typer.testing import CliRunner

from frontrow.cli.room import app
from frontrow.core.errors import ConfigError
from frontrow.settings.room import RoomSettings
from frontrow.web.server.room_server import read_settings
from tests.support.servers import Valkey, free_port
from tests.web.room.room_process import KEY, Served, environment, room, wait_for


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "room", capacity=4)
    yield served
    served.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One server for the tests that leave it as it was."""
    served = Served(tmp_path_factory.mktemp("shared") / "room", capacity=100)
    yield served
    served.close()


def sub(place: str) -> int:
    return int(jwt.decode(place, options={"verify_signature": False})["sub"])


def test_one_purchase_and_a_kill_in_the_middle_lose_nobodys_place(embedded: Served) -> None:
    """W1, W5, W6, W7, W13, F5."""
    with ThreadPoolExecutor(10) as pool:
        places = sorted(pool.map(lambda _: embedded.join(), range(50)), key=sub)
    assert [sub(place) for place in places] == list(range(1, 51))
    wait_for(lambda: embedded.status(places[0])["state"] == "active")
    claimed = embedded.claim(places[0])
    assert claimed.status_code == 201
    assert embedded.claim(places[0]).json()["code"] == "already_claimed"
    before = [embedded.status(place) for place in places]
    embedded.stop(signal.SIGKILL)
    embedded.start()
    after = [embedded.status(place) for place in places]
    assert [told["position"] for told in after] == [told["position"] for told in before]
    assert all(b["ahead"] <= a["ahead"] for a, b in zip(before, after, strict=True)), "nobody's position worsened"
    assert after[0]["epoch"] > before[0]["epoch"]
    assert embedded.claim(places[0]).json()["code"] == "already_claimed", "a pass is not given twice over a crash"
    assert sub(embedded.join()) == 51
    bearer = {"Authorization": f"Bearer {claimed.json()['pass']}"}
    assert embedded.client.get("/pass", headers=bearer).status_code == 204
    assert embedded.client.post("/give-back", headers=bearer).json() == {"ended": True}
    assert embedded.client.get("/pass", headers=bearer).status_code == 403


def test_the_command_line_steers_the_room(shared: Served) -> None:
    url = ("--url", f"http://127.0.0.1:{shared.port}")
    assert json.loads(room("pause", "--json", *url).stdout)["phase"] == "paused"
    assert json.loads(shared.client.get("/now-serving").content)["s"] == "paused"
    assert json.loads(room("resume", "--json", *url).stdout)["phase"] == "open"
    assert json.loads(room("rate", "7000", "--json", *url).stdout)["rate_per_s"] == 7000
    assert "aurora: open" in room("status", *url).stdout
    refused = room("pause", *url, key="wrong")
    assert refused.exit_code != 0
    assert str(refused.exception) == "frontrow room: 401 send the organiser key as a bearer token"
    answer = refused.exception.__context__ if refused.exception else None
    assert isinstance(answer, urllib.error.HTTPError)
    assert answer.closed, "its connection is not left to the garbage collector (O1: Python 3.14 warns)"
    gone = room("status", "--url", f"http://127.0.0.1:{free_port()}")
    assert str(gone.exception).startswith("frontrow room: nobody answers at")


def test_two_workers_on_redis_survive_a_worker_killed_and_redis_wiped(own_valkey: Valkey, tmp_path: Path) -> None:
    """W4, W6, W13, F1, F5: no valid place lost, epoch bumped, admissions resume within 10 s."""
    served = Served(tmp_path / "room", "--store", own_valkey.url, "--workers", "2", capacity=20, grace_s=600)
    try:
        with ThreadPoolExecutor(20) as pool:
            places = sorted(pool.map(lambda _: served.join(), range(200)), key=sub)
        assert [sub(place) for place in places] == list(range(1, 201)), "unique and gap-free over two processes"
        wait_for(lambda: served.status(places[0])["state"] == "active")
        assert served.claim(places[0]).status_code == 201
        before = served.status(places[199])
        wait_for(lambda: served.recorded() == 200)  # the trail is written behind the answers (W13)
        victim = served.workers()[0]
        os.kill(victim, signal.SIGKILL)
        own_valkey.command("FLUSHALL")
        wait_for(lambda: served.status(places[199])["epoch"] > before["epoch"], served.log)
        wait_for(lambda: served.claim(places[1]).status_code == 201, served.log)
        after = served.status(places[199])
        assert after["position"] == before["position"] == 200
        assert after["ahead"] <= before["ahead"]
        assert served.claim(places[0]).json()["code"] == "already_claimed"
        fresh = served.join()
        assert sub(fresh) > 200, "nobody gets a place that somebody has"
    finally:
        served.close()
    assert served.process.returncode == 0, served.log()


def test_a_join_with_altcha_needs_work_and_gets_a_place(tmp_path: Path) -> None:
    """W12."""
    import base64

    from altcha import v1 as altcha

    served = Served(tmp_path / "room", "--human", "altcha", human_max_number=200, human_when="always")
    try:
        refused = served.client.post("/join")
        assert (refused.status_code, refused.json()["code"]) == (403, "human_check_failed")
        asked = served.client.get("/challenge").json()
        found = altcha.solve_challenge(asked["challenge"], asked["salt"], asked["algorithm"], asked["maxnumber"])
        assert found is not None
        answer = {name: asked[name] for name in ("algorithm", "challenge", "salt", "signature")}
        proof = base64.b64encode(json.dumps(answer | {"number": found.number}).encode()).decode()
        assert served.client.post("/join", json={"proof": proof}).status_code == 201
        again = served.client.post("/join", json={"proof": proof})
        assert (again.status_code, again.json()["code"]) == (403, "human_check_failed")
    finally:
        served.close()


def test_the_prequeue_is_drawn_and_anybody_can_check_it(tmp_path: Path) -> None:
    served = Served(tmp_path / "room", opening="prequeue")
    try:
        places = [served.join() for _ in range(20)]
        assert served.status(places[0])["position"] is None
        commitment = served.client.get("/draw").json()["commitment"]
        opened = served.client.patch(
            "/room", headers={"Authorization": f"Bearer {KEY}"}, json={"action": "open", "beacon": "dice 4 2 6"}
        )
        assert opened.status_code == 200
        positions = [served.status(place)["position"] for place in places]
        assert sorted(positions) == list(range(1, 21))
        record = tmp_path / "draw.json"
        record.write_bytes(served.client.get("/draw").content)
    finally:
        served.close()
    for arrival in (1, 20):
        check = ["--commitment", commitment, "--position", str(positions[arrival - 1]), "--json"]
        told = room("verify-draw", str(record), str(arrival), *check)
        assert json.loads(told.stdout)["as_given"]
    for wrong in (["--position", str(positions[0] % 20 + 1)], ["--commitment", "00"], ["--lane", "vip"]):
        assert room("verify-draw", str(record), "1", *wrong).exit_code != 0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"store": "memory://", "workers": 2}, "Redis store"),
        ({"human": "magic"}, "must be one of none, altcha, turnstile, hcaptcha, recaptcha"),
        ({"events": "", "console": "false"}, "at least one room"),
        ({"port": "99999"}, "from 0 to 65535"),
        ({"capacity": "many"}, "must be a whole number"),
    ],
)
def test_wrong_settings_stop_the_start_with_one_sentence(settings: dict[str, Any], words: str) -> None:
    given = {f"FRONTROW_ROOM_{name.upper()}": str(value) for name, value in settings.items()}
    told = CliRunner().invoke(app, ["serve"], env=given)
    assert told.exit_code != 0
    assert str(told.exception).startswith("frontrow room: ")
    assert words in str(told.exception)


def test_a_port_in_use_is_said_so(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        told = room("serve", "--port", str(taken.getsockname()[1]), "--folder", str(tmp_path))
    assert "cannot listen on 127.0.0.1" in str(told.exception)


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("FRONTROW_ROOM_CAPACTIY", "FRONTROW_ROOM_CAPACITY"),
        ("FRONTROW_ROOM_MIN_SLIDES", "FRONTROW_ROOM_MIN_SLIDE"),
        ("FRONTROW_ROM_CAPACITY", "FRONTROW_ROOM_CAPACITY"),
        ("FRONTROW_CAPACITY", "FRONTROW_ROOM_CAPACITY"),
    ],
)
def test_a_misspelt_variable_is_refused_with_the_nearest_setting(variable: str, meant: str, tmp_path: Path) -> None:
    """It was ignored in silence, and the room had another capacity than was meant."""
    told = CliRunner().invoke(app, ["serve", "--folder", str(tmp_path)], env={variable: "5"})
    assert told.exit_code != 0
    assert str(told.exception).startswith(f"frontrow room: {variable} is not a setting")
    assert str(told.exception).endswith(f"did you mean {meant}?")


def test_variables_of_the_platform_may_stand_beside_those_of_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRONTROW_SERVER_PORT", "9000")
    monkeypatch.setenv("FRONTROW_PORT", "tcp://10.0.0.1:8000")  # what Kubernetes says of a service named frontrow
    monkeypatch.setenv("FRONTROW_ROOM_CAPACITY", "7")
    assert read_settings(None).capacity == 7


def test_whole_windows_only_can_be_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FRONTROW_ROOM_MIN_SLIDE", "100")
    assert read_settings(None).config().min_slide == 100
    path = tmp_path / "frontrow.toml"
    path.write_text("[room]\nmin_slide = 20\nwindow_size = 20\ncatch_up_s = 3600\n")
    monkeypatch.delenv("FRONTROW_ROOM_MIN_SLIDE")
    made = read_settings(str(path)).config()
    assert (made.min_slide, made.window_size, made.most_windows) == (20, 20, 3600)
    with pytest.raises(ConfigError, match=r"room.min_slide \(101\) must not be above room.window_size \(100\)"):
        RoomSettings(min_slide=101)


def test_a_file_sets_everything_and_the_command_line_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "frontrow.toml"
    path.write_text('[room]\nevents = ["aurora"]\ncapacity = 7\nlanes = ["general:1", "fans:3"]\n')
    monkeypatch.setenv("FRONTROW_ROOM_CAPACITY", "8")
    assert read_settings(str(path)).capacity == 8
    made = read_settings(str(path), {"capacity": 9, "events": None})
    assert (made.capacity, made.events, made.root_event) == (9, ("aurora",), "aurora")
    assert [(rule.name, rule.weight) for rule in made.config().lanes] == [("general", 1), ("fans", 3)]
    assert RoomSettings(events=("a", "b")).root_event == ""
    with pytest.raises(ConfigError, match="fans:x"):
        RoomSettings(lanes=("fans:x",)).config()


def test_simulated_visitors_make_a_queue_that_moves(tmp_path: Path) -> None:
    """A person who joins stands behind them and comes nearer; the room says itself that it has no shop."""
    served = Served(tmp_path / "room", "--simulate", "60", window_size=100)
    try:
        organiser = {"Authorization": f"Bearer {KEY}"}
        wait_for(lambda: served.client.get("/room", headers=organiser).json()["waiting"] >= 40)
        place = served.join()
        before = served.status(place)["ahead"]
        assert before >= 40
        wait_for(lambda: served.status(place)["ahead"] < before)
        assert "no shop" in served.client.get("/inside").text
    finally:
        served.close()
    told = room("serve", "--simulate", "5", "--store", "redis://127.0.0.1:1/0", "--folder", str(tmp_path))
    assert "--simulate is for a room in memory" in str(told.exception)


def test_simulated_visitors_of_an_earlier_run_hold_nobody_up(tmp_path: Path) -> None:
    """They kept their places in the line and in the shop, so a second run in one folder stood still. A person who waits
    with a place of the first run must not bring them back either."""
    served = Served(tmp_path / "room", "--simulate", "60", "--capacity", "10")
    organiser = {"Authorization": f"Bearer {KEY}"}
    try:
        wait_for(lambda: served.client.get("/room", headers=organiser).json()["active"] >= 10)
        old_place = served.join()
        served.stop(signal.SIGKILL)
        served.start()
        assert served.client.get("/status", headers={"Authorization": f"Bearer {old_place}"}).status_code == 401
        wait_for(lambda: served.client.get("/room", headers=organiser).json()["waiting"] >= 40)
        place = served.join()
        before = served.status(place)["ahead"]
        wait_for(lambda: served.status(place)["ahead"] <= before - 12, served.log)
    finally:
        served.close()


def test_the_example_shop_asks_a_running_room(shared: Served) -> None:
    """W7: `examples/protected_shop.py` as it stands, with the room's own keys."""
    program = [sys.executable, "-m", "uvicorn", "examples.protected_shop:app", "--lifespan", "off"]
    port = free_port()
    settings = environment() | {"ROOM_URL": f"http://127.0.0.1:{shared.port}"}
    shop = subprocess.Popen([*program, "--port", str(port)], env=settings, cwd=Path(__file__).parents[3])
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=20) as client:
            wait_for(lambda: client.get("/static/app.css").status_code == 200)
            assert client.get("/seats").json()["code"] == "pass_required"
            place = shared.join()
            wait_for(lambda: shared.status(place)["state"] == "active")
            text = shared.claim(place).json()["pass"]
            welcome = client.get("/seats", headers={"Authorization": f"Bearer {text}"})
            assert "Your pass: place:aurora:0.1." in welcome.text
    finally:
        shop.terminate()
        shop.wait(20)


def test_every_answer_of_a_room_server_says_nosniff_once(embedded: Served) -> None:
    asked = [
        ("GET", path) for path in ("/", "/healthz", "/metrics", "/status", "/now-serving", "/jwks.json", "/nowhere")
    ]
    asked += [("POST", path) for path in ("/join", "/claim", "/nowhere", "/healthz")] + [
        ("HEAD", "/"),
        ("PUT", "/join"),
    ]
    for method, path in asked:
        answer = embedded.client.request(method, path)
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"], (method, path, answer.status_code)
    with socket.create_connection(("127.0.0.1", embedded.port), 20) as line:
        line.sendall(b"no request at all\r\n\r\n")
        told = b"".join(iter(lambda: line.recv(65_536), b"")).lower()
    assert told.count(b"x-content-type-options: nosniff") == 1, told
