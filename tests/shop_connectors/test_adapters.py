"""The vectors through what really answers: the Python middlewares, nginx with forward-auth, Node, edge and snippet.

The room is a stub that says what the vector's room says: these tests are about how a request comes in and an answer
goes out.
"""

import asyncio
import json
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from typing import Any
from urllib.parse import unquote

import pytest

from connectors.make_vectors import ROOMS, SETUPS
from frontrow.waitingroom.protect.connector import Known, Setup, learn
from frontrow.waitingroom.protect.connector_asgi import AsgiConnector
from frontrow.waitingroom.protect.connector_client import Connector
from frontrow.waitingroom.protect.connector_wsgi import WsgiConnector
from frontrow.waitingroom.protect.forward_auth import ForwardAuth
from tests.shop_connectors.languages import NODE, ROOT, VECTORS
from tests.support.nginx import Nginx
from tests.web.room.served import serving

GIVEN = "a.new.pass"
Answer = tuple[int, str, list[str], str]  # status, location, cookies, person


def connector_of(vector: dict[str, Any]) -> Connector:
    """A connector that knows what the vector's room says, at the vector's time."""

    def call(url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
        if "/connector?" in url:
            return 200, ROOMS[vector["room"]]
        return 200, {"pass": GIVEN, "ended": True}

    connector = Connector(Setup(**SETUPS[vector["setup"]]), call=call, now=lambda: vector["now_s"])
    connector.known = learn(Known(), ROOMS[vector["room"]])
    return connector


def check(vector: dict[str, Any], answer: Answer) -> None:
    """Whether the answer is what the decision of the vector leads to."""
    expect, setup = vector["expect"], SETUPS[vector["setup"]]
    status, location, cookies, person = answer
    action = expect["action"]
    name = Setup(**setup).cookie("pass")
    if action in ("pass", "open"):
        assert (status, person) == (200, expect.get("person", "")), vector["name"]
        assert bool(cookies) == expect.get("renew", False), vector["name"]
    elif action == "exchange" or action == "strip":
        assert (status, location) == (303, expect.get("page", expect.get("location"))), vector["name"]
        assert [line.startswith(f"{name}={GIVEN};") for line in cookies] == [True] * (action == "exchange")
    elif action == "room":
        bind = r"bind=[A-Za-z0-9_-]{43}"
        assert status == 303, vector["name"]
        if "cookies" in expect:  # the verifier is a new one
            assert re.sub(bind, "", location) == re.sub(bind, "", expect["location"]), vector["name"]
            assert len(cookies) == 1, vector["name"]
        else:
            assert (location, cookies) == (expect["location"], []), vector["name"]
    elif action == "end":
        assert (status, cookies) == (204, expect["cookies"]), vector["name"]
    else:
        foreign = expect["code"] in ("pass_foreign", "cross_site")
        away = expect["code"] == "key_unknown" and vector["room"] == "empty"
        assert status == (503 if away else 403 if foreign else 401), vector["name"]


def is_away(vector: dict[str, Any]) -> bool:
    """A room without keys: the connector answers 503 whatever was decided."""
    return vector["room"] == "empty"


def of_headers(pairs: list[tuple[str, str]], status: int, person: str) -> Answer:
    named = [(name.lower(), value) for name, value in pairs]
    cookies = [value for name, value in named if name == "set-cookie"]
    return status, dict(named).get("location", ""), cookies, person


async def ask_asgi(vector: dict[str, Any]) -> Answer:
    sent: list[Any] = []
    seen: list[str] = []

    async def shop(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["frontrow.visit"].person)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        sent.append(message)

    path, _, query = vector["target"].partition("?")
    headers = [(name.title().encode(), value.encode("latin-1")) for name, value in vector["headers"].items()]
    raw = path.encode("latin-1")
    scope = {"type": "http", "method": vector["method"], "path": path, "raw_path": raw, "query_string": query.encode()}
    await AsgiConnector(shop, connector_of(vector))(scope | {"headers": headers}, None, send)  # type: ignore[arg-type]
    pairs = [(name.decode(), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    return of_headers(pairs, sent[0]["status"], "".join(seen))


def ask_wsgi(vector: dict[str, Any]) -> Answer:
    told: list[Any] = []
    seen: list[str] = []

    def shop(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        seen.append(environ["frontrow.visit"].person)
        start_response("200 OK", [])
        return [b""]

    headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in vector["headers"].items()}
    environ = {"REQUEST_METHOD": vector["method"], "REQUEST_URI": vector["target"], "PATH_INFO": "/tidied"} | headers
    WsgiConnector(shop, connector_of(vector))(environ, lambda *args: told.extend(args))
    return of_headers(told[1], int(told[0].split()[0]), "".join(seen))


TARGETED = [vector for vector in VECTORS if vector["target"] and not is_away(vector)]


def test_the_asgi_middleware_answers_every_vector() -> None:
    async def all_of_them() -> None:
        for vector in TARGETED:
            if vector["target"].split("?")[0]:
                check(vector, await ask_asgi(vector))

    asyncio.run(all_of_them())


def test_the_wsgi_middleware_answers_every_vector() -> None:
    for vector in TARGETED:
        check(vector, ask_wsgi(vector))


def test_without_keys_a_visitor_is_asked_to_wait_a_moment() -> None:
    for vector in VECTORS:
        if is_away(vector):
            assert ask_wsgi(vector)[0] == 503


# -- nginx ------------------------------------------------------------------------------------------------------------

SENDABLE = re.compile(r"[!-~]+")
KEPT_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS")


def is_sendable(vector: dict[str, Any]) -> bool:
    """Whether nginx takes such a request at all: it refuses many tricks by itself."""
    target, headers = vector["target"], "".join(vector["headers"].values())
    plain = target.startswith("/") and bool(SENDABLE.fullmatch(target)) and "#" not in target and "%00" not in target
    whole = "\r" not in headers and "\n" not in headers and "\0" not in headers and len(headers) < 7_000
    inside = not target.startswith("/..") and vector["setup"] == "https" and vector["room"] == "usual"
    return plain and whole and inside and headers.isascii() and vector["method"] in KEPT_METHODS


@pytest.fixture(scope="module")
def nginx() -> Iterator[int]:
    """nginx with the configuration of the examples, before a connector and a shop that tells who is there."""
    first = next(vector for vector in VECTORS if vector["room"] == "usual")
    connector = connector_of(first)

    async def shop(scope: Any, receive: Any, send: Any) -> None:
        person = dict(scope["headers"]).get(b"frontrow-person", b"")
        headers = [(b"x-person", person), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    text = (ROOT / "examples/nginx/other_domain.conf").read_text()
    with (
        serving(ForwardAuth(connector), lifespan="off") as decides,
        serving(shop, lifespan="off") as shop_port,
    ):
        text = text.replace("127.0.0.1:8009", f"127.0.0.1:{decides}").replace(
            "127.0.0.1:8000;", f"127.0.0.1:{shop_port};"
        )
        with Nginx(text) as running:
            yield running.port


def test_nginx_answers_the_vectors_that_it_lets_through(nginx: int) -> None:
    asked = [vector for vector in VECTORS if is_sendable(vector)]
    assert len(asked) >= 200
    for vector in asked:
        headers = {"Frontrow-Person": "queen", "Frontrow_Person": "queen"} | vector["headers"]
        lines = [f"{vector['method']} {vector['target']} HTTP/1.1", "Host: shop.example", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in headers.items()] + ["Content-Length: 0", "", ""]
        with socket.create_connection(("127.0.0.1", nginx), 30) as line:
            line.sendall("\r\n".join(lines).encode())
            answer = HTTPResponse(line, method=vector["method"])
            answer.begin()
            answer.read()
        pairs = answer.getheaders()
        if answer.status == 400:
            continue  # nginx itself refuses this path
        status, location, cookies, _ = of_headers(pairs, answer.status, "")
        person = unquote(answer.getheader("x-person", ""))
        if vector["expect"]["action"] == "end":  # auth_request hands on one cookie only
            assert (status, len(cookies)) == (204, 1), vector["name"]
            continue
        if vector["expect"]["action"] == "refuse":
            assert status in (401, 403), vector["name"]
            continue
        check(vector, (status, location.removeprefix("http://shop.example"), cookies, person))


# -- JavaScript -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ["express", "worker", "snippet"])
def test_an_adapter_in_javascript_answers_the_vectors(adapter: str) -> None:
    command = [str(NODE), "tests/shop_connectors/adapters.mjs", adapter]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["wrong"] == []
    assert told["asked"] >= 100, told
