"""Connectors that read the rules of the room's console: kept while the room is away, never opening everything (O6)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.make_rules_vectors import KEY, RULES, STAFF
from connectors.make_vectors import NOW_S, ROOMS, SETUPS, signed
from frontrow.waitingroom.console.model.protection import (
    Crawler,
    ProtectionRules,
    ShopRequest,
    Verdict,
    decide,
    key_hash,
    rules_document,
)
from frontrow.waitingroom.protect.connector import Setup
from frontrow.waitingroom.protect.connector_client import RULES_EVERY_S, Connector
from frontrow.waitingroom.protect.connector_rules import RULES_LIFE_S, read_rules, why_open
from frontrow.waitingroom.protect.forward_auth import ForwardAuth
from tests.shop_connectors.languages import HERE, Language
from tests.shop_connectors.running_shop import ROOM, Shop, running
from tests.support.servers import free_port
from tests.web.room.console_session import ConsoleClient, close_clients, owner_of
from tests.web.room.room_process import Served, wait_for

HTML = {"accept": "text/html"}
BYPASS = {"frontrow-bypass": KEY}


@dataclass
class Room:
    """A room that a connector asks, at the test's own time."""

    rules: Any = field(default_factory=lambda: RULES["all"])
    status: int = 200
    up: bool = True
    now_s: float = NOW_S
    asked: list[str] = field(default_factory=list)

    def __call__(self, url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
        self.asked.append(url.rpartition("/")[2].partition("?")[0])
        if not self.up:
            return 0, {}
        if url.endswith("/rules"):
            assert headers == {"Authorization": "Bearer frk_reads"}
            return self.status, self.rules
        return 200, ROOMS["usual"]

    def connector(self) -> Connector:
        setup = Setup(**SETUPS["https"], rules_key="frk_reads")
        return Connector(setup, call=self, now=lambda: self.now_s, monotonic=lambda: self.now_s)


def asked(connector: Connector, target: str, address: str = "", **headers: str) -> tuple[str, str]:
    done = connector.handle("GET", target, HTML | headers, address)
    return done.action, done.code


def test_the_rules_are_read_with_the_key_and_again_every_few_seconds() -> None:
    room = Room()
    connector = room.connector()
    assert asked(connector, "/news") == ("open", "")
    assert asked(connector, "/checkout") == ("room", "pass_required")
    assert asked(connector, "/checkout", STAFF) == ("open", "bypass_network")
    assert room.asked.count("rules") == 1
    room.rules = RULES["none"]
    room.now_s += RULES_EVERY_S - 1
    assert asked(connector, "/news") == ("open", "")
    room.now_s += 1
    assert connector.is_stale
    assert asked(connector, "/news") == ("room", "pass_required")
    assert room.asked.count("rules") == 2


def test_without_a_key_nobody_asks_for_rules() -> None:
    room = Room()
    connector = Connector(Setup(**SETUPS["https"]), call=room, now=lambda: NOW_S, monotonic=lambda: NOW_S)
    assert asked(connector, "/news") == ("room", "pass_required")
    assert room.asked == ["connector"]


@pytest.mark.parametrize(
    "trouble",
    [
        {"up": False},
        {"status": 401},
        {"status": 503},
        {"rules": {}},
        {"rules": []},
        {"rules": None},
        {"rules": RULES["none"] | {"v": 2}},
        {"rules": RULES["none"] | {"event": "borealis"}},
        {"rules": RULES["none"] | {"paths": "/"}},
        {"rules": RULES["none"] | {"paths": [7]}},
        {"rules": RULES["none"] | {"networks": ["everywhere"]}},
        {"rules": RULES["none"] | {"crawlers": [{"agent": "x"}]}},
    ],
)
def test_whatever_is_wrong_with_the_rules_the_last_good_ones_stay_for_a_day_and_staff_longer(
    trouble: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """A room that is away, a revoked key, a newer room's document: nothing opens, and no staff is locked out."""
    room = Room()
    fresh, connector = room.connector(), room.connector()
    assert asked(connector, "/news") == ("open", "")
    for name, value in trouble.items():
        setattr(room, name, value)
    assert asked(fresh, "/news")[0] != "open", "a connector that never read any rules opens nothing by them"
    room.now_s += RULES_LIFE_S - 1
    assert asked(connector, "/news") == ("open", "")
    assert asked(connector, "/checkout") == ("room", "pass_required")
    room.now_s += 1
    assert asked(connector, "/news") == ("room", "pass_required")
    assert asked(connector, "/static/x") == ("open", ""), "the shop's own open paths stay"
    assert asked(connector, "/checkout", **BYPASS) == ("open", "bypass_key")
    assert asked(connector, "/checkout", STAFF) == ("open", "bypass_network")
    pass_ = signed(iat=NOW_S + RULES_LIFE_S - 9, exp=NOW_S + RULES_LIFE_S + 900)
    assert asked(connector, "/checkout", **{"frontrow-pass": pass_})[0] == "pass"
    assert "the last ones stay in use" in caplog.text
    room.up, room.status, room.rules = True, 200, RULES["all"]
    room.now_s += RULES_EVERY_S
    assert asked(connector, "/news") == ("open", ""), "back"


texts = st.text("/aAbc%2fF.;\\*é?x", max_size=12).map("/".__add__)
patterns = st.sampled_from(["/a", "/a*", "/a/*", "/A/b", "/b/c*", "/x*"])
addresses = st.sampled_from(["", "192.0.2.7", "::ffff:192.0.2.7", "198.51.100.1", "2001:db8::1", "x", "192.0.2.7/64"])


@given(
    rules=st.builds(
        ProtectionRules,
        hosts=st.sampled_from([(), ("shop.example",), ("*.example",), ("other.example",)]),
        paths=st.lists(patterns, max_size=3).map(tuple),
        open_paths=st.lists(patterns, max_size=2).map(tuple),
        methods=st.sampled_from([(), ("GET",), ("POST",)]),
        networks=st.sampled_from([(), ("192.0.2.0/24",), ("2001:db8::/32",)]),
        key_hashes=st.sampled_from([(), (key_hash("k"),)]),
        crawlers=st.sampled_from([(), (Crawler("bot", ("198.51.100.0/24",)),)]),
    ),
    target=texts,
    method=st.sampled_from(["GET", "POST", "get"]),
    address=addresses,
    agent=st.sampled_from(["", "a Bot"]),
    key=st.sampled_from(["", "k", "K"]),
)
def test_a_connector_decides_as_the_room_does(
    rules: ProtectionRules, target: str, method: str, address: str, agent: str, key: str
) -> None:
    verdict = decide(rules, ShopRequest(method, "shop.example", target, address, agent, key))
    told = rules_document("aurora", rules, 1)
    sent = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
    headers = {"user-agent": agent, "frontrow-bypass": key}
    for listed in sent["crawlers"]:
        listed["networks"] = list(listed["networks"])
    why = why_open(read_rules(sent, "aurora", NOW_S), "shop.example", method, target, headers, address, NOW_S)
    assert why == ("" if verdict is Verdict.PROTECTED else verdict.value)


@pytest.mark.parametrize(("header", "status"), [("", 401), ("X-Original-Address", 204)])
async def test_behind_a_proxy_an_address_counts_only_in_the_header_that_the_operator_named(
    header: str, status: int
) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asked_by = {"x-original-uri": "/checkout", "x-original-method": "GET", "x-original-address": STAFF, "accept": "*/*"}
    asked_by |= {"x-forwarded-for": STAFF}
    headers = [(name.encode(), value.encode()) for name, value in asked_by.items()]
    scope = {"type": "http", "method": "GET", "path": "/", "headers": headers, "client": (STAFF, 1)}
    await ForwardAuth(Room().connector(), header)(scope, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == status


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, ConsoleClient, str]]:
    """A room with its owner and a key for the rules."""
    room = Served(tmp_path_factory.mktemp("rules") / "room", capacity=100)
    owner = owner_of(room)
    made = owner.http.post("/console/keys", data={"csrf": owner.csrf, "name": "shops", "scope": ["rules:read"]})
    yield room, owner, owner.secret_shown(made)
    close_clients()
    room.close()


@pytest.mark.parametrize("language", [one for one in HERE if one.reads_rules], ids=lambda one: one.name)
def test_a_shop_follows_the_rules_of_the_console_and_keeps_them_while_the_room_is_away(
    console: tuple[Served, ConsoleClient, str],
    language: Language,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room, owner, key = console
    monkeypatch.setenv("RULES_KEY", key)
    owner.post("rooms/aurora/rules", paths="/buy*", open_paths="/buy/help", networks="", crawlers="")
    secret = owner.secret_shown(owner.post("rooms/aurora/rules", make_key="yes"))
    folder, port = tmp_path_factory.mktemp(language.name), free_port()
    with running(language, folder, port, f"http://127.0.0.1:{room.port}") as log:
        shop = Shop(language.name, f"http://127.0.0.1:{port}", room, log)
        with shop.browser() as browser:

            def door(path: str, **headers: str) -> int:
                answer = browser.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})
                return answer.status_code

            assert door("/news") == 200, log.read_text()[-2000:]
            sent = browser.get("/buy/1")
            assert sent.headers["location"].startswith(f"http://127.0.0.1:{room.port}{ROOM}/?bind=")
            assert (door("/buy/help"), door("/BUY/1"), door("/news/%2e%2e/buy")) == (200, 303, 303)
            assert (door("/buy/1", frontrow_bypass=secret), door("/buy/1", frontrow_bypass="frb_guess")) == (200, 303)
            owner.post("rooms/aurora/rules", paths="/buy*\n/news*", networks="", crawlers="")
            wait_for(lambda: door("/news") == 303, log.read_text, within_s=30)
            room.process.terminate()
            room.process.wait(30)
            try:
                assert (door("/other"), door("/news"), door("/health")) == (200, 303, 200)
                assert door("/buy/1", frontrow_bypass=secret) == 200, "staff are not locked out"
            finally:
                room.start()
    hashes = re.findall(r'name="drop_key" value="([^"]+)"', owner.get("rooms/aurora/rules").text)
    for one in hashes:
        owner.post("rooms/aurora/rules", drop_key=one)
    assert httpx.get(f"http://127.0.0.1:{room.port}{ROOM}/rules", trust_env=False).status_code == 401
