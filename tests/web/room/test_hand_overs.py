"""The hand-over to a shop on another domain, through a real `frontrow room serve`: once, bound, to registered ones
(O6)."""

import contextlib
import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import jwt
import pytest
import redis as redis_package

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.credentials.hand_over import bind_of
from frontrow.web.endpoints.room.openapi_shapes import SHAPES
from frontrow.web.endpoints.room.shop_wishes import check_origins
from tests.support.servers import Valkey
from tests.web.room.room_process import Served, wait_for

SHOP, OTHER = "https://shop.example", "https://tickets.example:8443"
VERIFIER = "v" * 43
WANTED = "/seats/caf%C3%A9?row=3&seat=a%26b"
EVENT = "/v1/events/aurora/room"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("room") / "room", capacity=1000, shops=f"{SHOP},{OTHER}")
    yield served
    served.close()


redis_client = redis_package.Redis.from_url
OPENED: list[httpx.Client] = []


@pytest.fixture(autouse=True)
def _closing() -> Iterator[None]:
    yield
    while OPENED:
        OPENED.pop().close()


class Browser:
    """A browser without scripts that a shop sent to the room."""

    def __init__(self, room: Served, verifier: str = VERIFIER) -> None:
        self.room, self.verifier = room, verifier
        self.client = httpx.Client(
            base_url=f"http://127.0.0.1:{room.port}", trust_env=False, timeout=20, headers={"Accept": "text/html"}
        )
        OPENED.append(self.client)

    def page(self, wanted: str = SHOP + WANTED, bind: str | None = None) -> httpx.Response:
        bind = bind_of(self.verifier) if bind is None else bind
        return self.client.get(f"{EVENT}/?bind={bind}&return={quote(wanted, safe='')}")

    def enter(self, wanted: str = SHOP + WANTED) -> str:
        """Join, wait and claim by the forms of the page; where the last one leads."""
        wish = f"{bind_of(self.verifier)}@{wanted}"
        joined = self.client.post(f"{EVENT}/join", data={"page": "true", "wish": wish})
        assert joined.status_code == 303, joined.text
        if wanted.startswith(f"{SHOP}/"):
            assert parse_qs(urlsplit(joined.headers["location"]).query)["bind"] == [bind_of(self.verifier)]
        wait_for(lambda: "data-state=active" in self.page().text, self.room.log)
        claimed = self.client.post(f"{EVENT}/claim", data={"page": "true", "wish": wish})
        assert claimed.status_code == 303, claimed.text
        return str(claimed.headers["location"])

    def exchange(self, url: str, verifier: str | None = None, event: str = EVENT) -> httpx.Response:
        body = {"token": url.rpartition("frontrow=")[2], "verifier": verifier or self.verifier}
        return self.client.post(f"{event}/exchange", data=body)

    def ended(self, after: str = "") -> Any:
        return self.client.get(f"{EVENT}/connector?after={after}").json()


def test_a_visitor_is_handed_over_to_the_page_that_was_wanted_and_only_once(room: Served) -> None:
    browser = Browser(room)
    url = browser.enter()
    assert url.startswith(f"{SHOP}{WANTED}&frontrow=")
    assert "pass" not in " ".join(browser.client.cookies), "the room's host keeps no pass of the shop"
    first = browser.exchange(url)
    assert first.status_code == 200, first.text
    assert set(first.json()) == set(SHAPES["exchange"].example)
    assert set(browser.ended()) == set(SHAPES["connector"].example)
    claims = jwt.decode(first.json()["pass"], options={"verify_signature": False})
    assert (claims["shop"], claims["aud"], claims["exp"]) == (SHOP, "aurora", first.json()["expires_at_s"])
    assert browser.exchange(url).json()["code"] == "hand_over_used"
    bearer = {"Frontrow-Pass": first.json()["pass"]}
    assert browser.client.get(f"{EVENT}/pass", headers=bearer).status_code == 403, "not for the room's own host"


def test_of_fifty_who_exchange_one_url_at_once_one_gets_in(room: Served) -> None:
    browser = Browser(room)
    url = browser.enter()
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: browser.exchange(url), range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49


def test_two_servers_on_one_redis_exchange_one_url_once(tmp_path: Path) -> None:
    with Valkey() as redis:
        settings: dict[str, Any] = {"shops": SHOP, "store": redis.url, "audit": str(tmp_path / "audit.sqlite")}
        servers = [Served(tmp_path / "room", **settings) for _ in range(2)]
        try:
            browser = Browser(servers[0])
            url = browser.enter()
            others = [Browser(one) for one in servers]
            with ThreadPoolExecutor(50) as pool:
                answers = list(pool.map(lambda number: others[number % 2].exchange(url), range(50)))
            assert sorted(answer.status_code for answer in answers) == [200] + [409] * 49
            old = browser.page().headers["location"]
            with contextlib.closing(redis_client(redis.url)) as client:
                client.flushall()  # the store is lost: the room is rebuilt from its audit under another epoch
            wait_for(lambda: browser.ended()["mark"].startswith("2."), servers[0].log)
            assert {one.exchange(old).json()["code"] for one in others} == {"hand_over_invalid"}
            fresh = browser.page().headers["location"]
            answers = [one.exchange(fresh) for one in others]
            assert sorted(answer.status_code for answer in answers) == [200, 409], "the visit goes on"
        finally:
            for one in servers:
                one.close()


def test_a_copied_url_is_of_no_use_without_the_verifier_and_is_not_used_up_by_it(room: Served) -> None:
    browser = Browser(room)
    url = browser.enter()
    for verifier in ("w" * 43, "", "v" * 42, "v" * 44, "v" * 5000, bind_of(VERIFIER)):
        refused = browser.exchange(url, verifier or " ")
        assert (refused.status_code, refused.json()["code"]) in {(401, "hand_over_invalid"), (422, "invalid_input")}
    assert browser.exchange(url).status_code == 200


def test_forged_and_foreign_hand_overs_are_refused(room: Served) -> None:
    browser = Browser(room)
    url = browser.enter()
    token = url.rpartition("frontrow=")[2]
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    forged = [token[:-1] + char for char in last if char != token[-1]]
    forged += ["", "x", token[:-4], token + "AAAA", "é" * 60, token.replace(token[40], "!", 1), "A" * 4000]
    for text in forged:
        assert browser.exchange(f"frontrow={text}").status_code in (401, 422), text
    kept = next(value for name, value in browser.client.cookies.items() if "visit" in name)
    assert browser.exchange(f"frontrow={kept}").json()["code"] == "hand_over_invalid", "of another kind"
    elsewhere = browser.exchange(url, event="/v1/events/borealis/room")
    assert elsewhere.status_code in (403, 404)
    assert browser.exchange(url).status_code == 200


def test_who_has_a_visit_is_led_on_at_once_to_each_shop_but_not_for_ever(room: Served) -> None:
    browser = Browser(room)
    browser.enter()
    to_other = browser.page(f"{OTHER}/x", bind_of("o" * 43))
    assert to_other.status_code == 303
    passed = browser.exchange(to_other.headers["location"], "o" * 43)
    assert jwt.decode(passed.json()["pass"], options={"verify_signature": False})["shop"] == OTHER
    unbound = browser.page(f"{SHOP}/y", "")
    assert (unbound.status_code, unbound.headers["location"]) == (303, f"{SHOP}/y")
    again = [browser.page() for _ in range(3)]
    assert [one.status_code for one in again] == [303, 200, 200], "a shop that keeps no cookie"
    assert "Allow its cookies" in again[-1].text
    assert "data-state=lost" in again[-1].text
    by_hand = browser.client.post(f"{EVENT}/claim", data={"page": "true", "wish": f"{bind_of(VERIFIER)}@{SHOP}/z"})
    assert by_hand.headers["location"].startswith(f"{SHOP}/z?frontrow=")


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        f"{SHOP}.evil.example/",
        f"{SHOP}@evil.example/",
        f"{SHOP}:444/",
        "//evil.example/",
        f"{SHOP}//evil.example/",
        f"{SHOP}/../x",
        f"{SHOP}/\\evil.example",
        f"{SHOP}/%2e%2e/x",
        f"{SHOP}/a%0d%0aSet-Cookie:x",
        "javascript:alert(1)",
        "http://shop.example/",
    ],
)
def test_nobody_is_led_to_a_site_that_is_not_registered(room: Served, wanted: str) -> None:
    browser = Browser(room)
    url = browser.enter(wanted)
    assert re.fullmatch(rf"{SHOP}/(%2e%2e/x)?(\?frontrow=[A-Za-z0-9_-]+)?", url), url


def test_a_hand_over_in_the_wanted_page_is_replaced(room: Served) -> None:
    browser = Browser(room)
    assert browser.enter(f"{SHOP}/a?frontrow=old&frontrow=older").startswith(f"{SHOP}/a?frontrow=")
    assert browser.page(f"{SHOP}/a?frontrow=old").headers["location"].count("frontrow=") == 1


def test_a_visit_that_ended_is_told_to_connectors_and_joins_again(room: Served) -> None:
    browser = Browser(room)
    before = browser.ended()
    assert (before["after"], before["complete"]) == ("", True)
    given = browser.exchange(browser.enter()).json()["pass"]
    claims = jwt.decode(given, options={"verify_signature": False})
    renewed = browser.client.post(f"{EVENT}/renew", headers={"Frontrow-Pass": given}).json()["pass"]
    header, body = jwt.get_unverified_header(renewed), jwt.decode(renewed, options={"verify_signature": False})
    assert (header["alg"], body["shop"]) == ("RS256", SHOP)
    assert header["kid"] in [key["kid"] for key in before["keys"]]
    assert {key["alg"] for key in before["keys"]} == {"RS256"}
    assert browser.client.post(f"{EVENT}/give-back", headers={"Frontrow-Pass": renewed}).json() == {"ended": True}
    after = browser.ended(before["mark"])
    assert after["after"] == before["mark"]
    visit_id = f"aurora.{'.'.join(map(str, claims['plc']))}"
    assert [entry.rpartition(":")[0] for entry in after["ended"]] == [visit_id]
    assert visit_id in [entry.rpartition(":")[0] for entry in browser.ended()["ended"]]
    again = browser.page()
    assert "Get your place" in again.text, "no error, and no place that is used up"
    assert "data-state=none" in again.text


def test_the_snippet_of_a_registered_shop_may_read_what_connectors_read(room: Served) -> None:
    browser = Browser(room)
    for origin, allowed in ((SHOP, SHOP), ("https://evil.example", None), ("null", None)):
        told = browser.client.get(f"{EVENT}/connector", headers={"Origin": origin})
        assert told.headers.get("access-control-allow-origin") == allowed
    given = browser.exchange(browser.enter()).json()["pass"]
    renewed = browser.client.post(f"{EVENT}/renew", data={"pass": given}, headers={"Origin": SHOP})
    assert renewed.headers["access-control-allow-origin"] == SHOP
    ended = browser.client.post(f"{EVENT}/give-back", data={"pass": renewed.json()["pass"]}, headers={"Origin": SHOP})
    assert (ended.json(), ended.headers["access-control-allow-origin"]) == ({"ended": True}, SHOP)


def test_a_room_that_lost_its_store_exchanges_nothing_issued_before_and_issues_anew(tmp_path: Path) -> None:
    """The embedded store is lost by a kill. The room comes back under a new epoch, and the visit goes on."""
    room = Served(tmp_path / "room", shops=SHOP)
    try:
        browser = Browser(room)
        url, spare = browser.enter(), browser.page().headers["location"]
        assert browser.exchange(url).status_code == 200
        room.stop(signal.SIGKILL)
        room.start()
        for old in (url, spare):
            assert browser.exchange(old).json()["code"] == "hand_over_invalid"
        fresh = browser.page()
        assert fresh.status_code == 303, "no second wait"
        assert browser.exchange(fresh.headers["location"]).status_code == 200
    finally:
        room.close()


@pytest.mark.parametrize(
    "shop",
    ["shop.example", "https://shop.example/", "https://Shop.example", "https://a@b", "https://shop.example:443", ""],
)
def test_a_shop_that_is_no_origin_is_refused_with_a_sentence(shop: str) -> None:
    with pytest.raises(ConfigError, match="is not an origin like"):
        check_origins([shop])


def test_a_queue_over_two_stores_hands_over_under_its_own_name(tmp_path: Path) -> None:
    """W11: the connector knows the queue; the pass is for the shard, and each shard tells which visits ended."""
    with Valkey() as one, Valkey() as two:
        room = Served(tmp_path / "room", "--shard", one.url, "--shard", two.url, capacity=10, shops=SHOP)
        try:
            browser = Browser(room)
            wish = f"{bind_of(VERIFIER)}@{SHOP}{WANTED}"
            joined = browser.client.post(f"{EVENT}/join", data={"page": "true", "wish": wish})
            base = urlsplit(joined.headers["location"]).path.rstrip("/")
            wait_for(lambda: "data-state=active" in browser.page().text, room.log)
            claimed = browser.client.post(f"{base}/claim", data={"page": "true", "wish": wish})
            before = browser.ended()
            assert before["events"] == ["aurora.0", "aurora.1"]
            passed = browser.exchange(claimed.headers["location"])
            assert passed.status_code == 200, passed.text
            assert browser.page().status_code == 303, "led on at once under the queue's name"
            claims = jwt.decode(passed.json()["pass"], options={"verify_signature": False})
            assert claims["aud"] in before["events"]
            ended = browser.client.post(f"{EVENT}/give-back", headers={"Frontrow-Pass": passed.json()["pass"]})
            assert ended.json() == {"ended": True}
            after = browser.ended(before["mark"])
            assert after["after"] == before["mark"]
            visit_id = ".".join(map(str, (claims["aud"], *claims["plc"])))
            assert [entry.rpartition(":")[0] for entry in after["ended"]] == [visit_id]
        finally:
            room.close()
