"""Several processes and several stores as one room: shards (W11), imported codes (W12), limits and metrics together."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import jwt
import pytest

from frontrow.app.room_wiring import make_endpoints, make_room
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits, EntranceRules, TooManyRequests
from tests.support.servers import Valkey
from tests.web.room.room_process import KEY, Served, room, wait_for

ORGANISER = {"Authorization": f"Bearer {KEY}"}
CLOSE = {"Connection": "close"}  # a new connection each time, so every worker gets some


@pytest.fixture(scope="module")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("several") / "room"
    with Valkey() as valkey:
        served = Served(folder, "--store", valkey.url, "--workers", "2", capacity=20, lanes="general:1,fans:3")
        yield served
        served.close()


def test_w12_codes_imported_while_running_are_good_once_in_every_process(two_workers: Served, tmp_path: Path) -> None:
    codes = [f"FAN-{number:04}" for number in range(60)]
    file = tmp_path / "codes.csv"
    file.write_text("code,lane\n" + "".join(f"{code},fans\n" for code in codes))
    url = ("--url", f"http://127.0.0.1:{two_workers.port}")
    early = two_workers.client.post("/join", json={"code": codes[0]}, headers=CLOSE)
    assert (early.status_code, early.json()["code"]) == (403, "code_invalid")
    for _ in range(2):  # again is harmless
        assert room("codes", "import", str(file), *url).stdout == "60 codes imported\n"
    with ThreadPoolExecutor(10) as pool:
        asked = [*codes, *codes]
        answers = list(
            pool.map(lambda code: two_workers.client.post("/join", json={"code": code}, headers=CLOSE), asked)
        )
    won = [answer for answer in answers if answer.status_code == 201]
    assert len(won) == 60, "each code is good once, whichever process is asked"
    assert {answer.json()["lane"] for answer in won} == {"fans"}
    assert {answer.json()["code"] for answer in answers if answer.status_code != 201} == {"code_used"}
    refused = two_workers.client.post("/codes", content="code,lane\nABCD,nowhere\n", headers=ORGANISER)
    assert refused.status_code in (400, 422)
    assert two_workers.client.post("/codes", content="code,lane\n").status_code == 401


def test_metrics_of_any_worker_show_the_sum(two_workers: Served) -> None:
    """Every join took one position, so all workers together counted as many joins as there are positions."""

    def counted() -> set[int]:
        pages = [two_workers.client.get("/metrics", headers=CLOSE).text for _ in range(12)]
        found = [re.search(r'requests_total\{endpoint="join"\} ([0-9.]+)', page) for page in pages]
        return {int(float(one[1])) if one else 0 for one in found}  # a worker may not have heard of any join yet

    for _ in range(40):
        assert two_workers.client.post("/join", headers=CLOSE).status_code == 201

    def issued() -> int:
        told = two_workers.client.get("/room", headers=ORGANISER).json()
        return sum(lane["issued"] for lane in told["lanes"])

    wait_for(lambda: counted() == {issued()}, two_workers.log)


async def test_limits_and_streams_are_divided_among_the_workers(tmp_path: Path) -> None:
    settings = RoomSettings(
        events=("aurora",), store="redis://127.0.0.1:1/0", folder=str(tmp_path), workers=4, max_streams=1000
    )
    from frontrow.waitingroom.credentials.room_keys import RoomKeys

    keys = RoomKeys.load(tmp_path)
    room = make_room(settings, keys)
    assert make_endpoints(settings, room, keys).endpoints.rooms.streams["aurora"].max_open == 250
    await room.aclose()
    entry = EntranceLimits(
        rules=EntranceRules("10/second", "50/second", "20/minute"), processes=4, clock=lambda: 1_000_000
    )
    for _ in range(12):
        entry.count_ip("192.0.2.1")
    with pytest.raises(TooManyRequests):
        entry.count_ip("192.0.2.1")
    lone = EntranceLimits(
        rules=EntranceRules("1/second", "1/second", "1/minute"), processes=64, clock=lambda: 1_000_000
    )
    lone.count_ip("192.0.2.1")


def event_of(place: str) -> str:
    return str(jwt.decode(place, options={"verify_signature": False})["evt"])


def test_w11_a_line_over_two_servers_is_one_room_over_http_and_outlives_one_of_them(tmp_path: Path) -> None:
    with Valkey() as one, Valkey() as two:
        served = Served(tmp_path / "room", "--shard", one.url, "--shard", two.url, capacity=10, window_size=50)
        try:
            answers = [served.client.post("/join", headers={"Idempotency-Key": f"k{n}"}) for n in range(60)]
            again = served.client.post("/join", headers={"Idempotency-Key": "k7"})
            places = [str(answer.json()["place"]) for answer in answers]
            assert again.json()["place"] == places[7], "the same key leads to the same shard"
            shards = {event_of(place) for place in places}
            assert shards == {"aurora.0", "aurora.1"}
            for shard in shards:
                mine = [
                    a.json()["position"] for a, place in zip(answers, places, strict=True) if event_of(place) == shard
                ]
                assert mine == list(range(1, len(mine) + 1)), "in order within a shard"
            assert served.status(places[0])["event"] == event_of(places[0])
            assert served.client.get("/now-serving").status_code == 404
            assert served.client.get(f"/v1/events/{event_of(places[0])}/room/now-serving").status_code == 200
            in_the_shop = claimed_everywhere(served, places)
            assert in_the_shop == 10, "the shards' slices are one capacity"
            told = served.client.get("/room", headers=ORGANISER).json()
            assert (told["event"], told["capacity"], len(told["shards"])) == ("aurora", 10, 2)
            assert sum(shard["capacity"] for shard in told["shards"]) <= 10
            changed = served.client.patch("/room", headers=ORGANISER, json={"action": "pause", "capacity": 12}).json()
            assert (changed["phase"], changed["capacity"]) == ("paused", 12)
            assert {shard["phase"] for shard in changed["shards"]} == {"paused"}
            two.kill()
            outcomes = [
                served.client.post("/join", headers={"Idempotency-Key": f"n{n}"}).status_code for n in range(30)
            ]
            assert set(outcomes) == {201, 503}, "one that is down stops only its own people"
        finally:
            served.close()


def claimed_everywhere(served: Served, places: list[str]) -> int:
    """Claim until nobody gets in any more; how many passes there are. Every pass is good under the line's name."""
    passes: dict[str, str] = {}

    def all_slid() -> bool:
        for place in places:
            if place not in passes:
                answer = served.claim(place)
                if answer.status_code == 201:
                    passes[place] = answer.json()["pass"]
        return len(passes) >= 10

    wait_for(all_slid, served.log)
    for text in passes.values():
        bearer = {"Authorization": f"Bearer {text}"}
        assert served.client.get("/pass", headers=bearer).status_code == 204
    extra: list[httpx.Response] = [served.claim(place) for place in places if place not in passes]
    assert all(answer.status_code != 201 for answer in extra)
    return len(passes)


def test_w11_the_page_of_a_line_leads_to_its_shard(tmp_path: Path) -> None:
    with Valkey() as one, Valkey() as two:
        served = Served(tmp_path / "room", "--shard", one.url, "--shard", two.url, capacity=0)
        try:
            form = {"Accept": "text/html", "Sec-Fetch-Site": "same-origin"}
            with httpx.Client(base_url=served.client.base_url, trust_env=False, timeout=20) as browser:
                assert "data-base=/v1/events/aurora/room " in browser.get("/", headers=form).text
                browser.post("/join", headers=form, data={"page": "true"})
                shown = browser.get("/", headers=form).text
            assert re.search(r"data-base=/v1/events/aurora\.[01]/room ", shown)
            assert "You’re in the queue" in shown
        finally:
            served.close()


def test_shards_need_no_other_store(tmp_path: Path) -> None:
    made = RoomSettings(events=("aurora", "borealis"), shards=("redis://a", "redis://b"), workers=3)
    assert made.rooms == ("aurora.0", "aurora.1", "borealis.0", "borealis.1")
    assert not made.embedded
