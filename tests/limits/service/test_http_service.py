"""O7: the HTTP interface: check, peek, refund, charge, batches, headers, errors."""

import asyncio
import base64

import pytest

from frontrow.limits.config import load_config
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits_service.http_connection import MAX_PIPELINED, Connections, Request, Response
from tests.limits.service.support import RULES, config_of, running
from tests.support.eventually import eventually

TWO_RULES = """
[[limits.rules]]
name = "user"
quota = "3/day burst 3 token_bucket"
key = ["user"]
[[limits.rules]]
name = "all"
quota = "5/day burst 5 token_bucket"
key = []
"""


@pytest.fixture(params=["memory", "redis"])
def store(request, redis_url):
    return "memory://" if request.param == "memory" else redis_url


async def test_a_check_is_answered_with_200_or_429_and_both_kinds_of_headers(tmp_path, store):
    async with running(config_of(tmp_path, RULES, store)) as service:
        first = await service.check("42")
        assert (first.status_code, first.json()["allowed"], first.json()["remaining"]) == (200, True, 2)
        assert first.headers["x-ratelimit-limit"] == "3"
        assert first.headers["ratelimit-policy"] == '"api";q=3;w=86400'
        await service.check("42", cost=2)
        refused = await service.check("42")
        assert (refused.status_code, refused.json()["rule"], refused.json()["source"]) == (429, "api", "store")
        assert 28_700 < refused.json()["retry_after_s"] <= 28_800
        assert 28_700 < int(refused.headers["retry-after"]) <= 28_800
        assert (await service.check("43")).status_code == 200, "another key has its own"


async def test_peek_refund_and_charge_do_what_their_names_say(tmp_path, store):
    async with running(config_of(tmp_path, RULES, store)) as service:
        peeked = await service.post("/v1/peek", {"key": "42", "cost": 3})
        assert (peeked.status_code, peeked.json()["remaining"]) == (200, 3)
        await service.check("42", cost=3)
        assert not (await service.post("/v1/peek", {"key": "42"})).json()["allowed"]
        assert (await service.post("/v1/peek", {"key": "42"})).status_code == 200, "to look is no refusal"
        assert (await service.post("/v1/refund", {"key": "42", "cost": 2})).json()["remaining"] == 2
        assert (await service.post("/v1/charge", {"key": "42", "cost": 1})).json()["remaining"] == 1


async def test_several_rules_are_charged_all_or_none(tmp_path, store):
    async with running(config_of(tmp_path, TWO_RULES, store)) as service:
        for _ in range(3):
            assert (await service.check({"user": "1"})).status_code == 200
        assert [(await service.check({"user": "1"})).json()["rule"] for _ in range(4)] == ["user"] * 4
        left = (await service.post("/v1/peek", {"key": {"user": "2"}, "rules": ["all"]})).json()
        assert left["remaining"] == 2, "what the user's rule refused did not burn the rule of all"
        assert (await service.check(7, rules=["user"])).json()["limit"] == 3, "a number is a key too"


async def test_several_keys_are_charged_all_or_none(tmp_path, store):
    async with running(config_of(tmp_path, RULES, store)) as service:
        await service.check("b", cost=3)
        refused = await service.post("/v1/check", {"keys": ["a", "b"]})
        assert refused.status_code == 429
        assert (await service.post("/v1/peek", {"key": "a"})).json()["remaining"] == 3
        assert (await service.post("/v1/check", {"keys": ["a", "c"]})).status_code == 200


async def test_a_batch_decides_each_on_its_own_and_names_what_is_wrong(tmp_path, store):
    async with running(config_of(tmp_path, RULES, store)) as service:
        checks = [{"key": "42"}, {"key": "42", "cost": 3}, {"key": "43", "cost": 3}, {"key": "42", "cost": 4}, {}]
        answer = await service.post("/v1/batch", {"checks": checks})
        rows = answer.json()["results"]
        assert [row.get("allowed") for row in rows] == [True, False, True, None, None]
        assert [row.get("error") for row in rows[3:]] == ["cost_too_large", "invalid_key"]


async def test_a_caller_may_bring_a_quota_of_its_own(tmp_path, store):
    async with running(config_of(tmp_path, RULES, store)) as service:
        asked = {"key": "42", "quota": "2/day burst 2 token_bucket; 100/day"}
        told = [(await service.post("/v1/check", asked)).status_code for _ in range(3)]
        assert told == [200, 200, 429]
        assert (await service.check("42")).json()["remaining"] == 2, "the file's rules count apart"
    async with running(config_of(tmp_path, RULES, store, inline_quotas=False)) as service:
        assert (await service.check("42", quota="1/s")).status_code == 403


async def test_rules_are_found_by_path_and_method_like_in_a_middleware(tmp_path):
    toml = """
    [[limits.rules]]
    name = "holds"
    quota = "1/day burst 1 token_bucket"
    key = ["user", "endpoint"]
    methods = ["POST"]
    paths = ["/events/{event}/holds"]
    """
    async with running(config_of(tmp_path, toml)) as service:
        asked = {"path": "/events/7/holds", "method": "POST"}
        assert (await service.check({"user": "1"}, **asked)).status_code == 200
        assert (await service.check({"user": "1"}, **asked | {"path": "/events/8/holds"})).status_code == 429
        assert (await service.check({"user": "1"}, path="/other")).json()["code"] == "unknown_rule"


async def test_a_middleware_and_the_service_share_their_counts(tmp_path, redis_url):
    """The same file and the same Redis: a Python application and a Go one can be limited together."""
    config = config_of(tmp_path, RULES + '\n[limits.identify]\nuser = "header:x-user"\n', redis_url)
    limits = load_config(tmp_path / "limits.toml", env={})

    async def application(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    limited = RateLimitMiddleware(application, **limits.middleware_options())
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"x-user", b"42")], "client": ("1.2.3.4", 1)}
    told = []

    async def send(message):
        told.append(message)

    async with running(config) as service:
        await limited(scope, None, send)
        assert told[0]["status"] == 200
        assert (await service.check("42")).json()["remaining"] == 1
        assert (await service.check({"user": "42"})).json()["remaining"] == 0
        told.clear()
        await limited(scope, None, send)
        assert told[0]["status"] == 429
    await limited.aclose()
    await limits.tiers.aclose()


async def test_tiers_are_those_of_the_file_or_of_the_caller(tmp_path):
    toml = RULES + 'tiers = { vip = "9/day burst 9 token_bucket" }\n[limits.tiers]\nvip = ["user:42"]\n'
    async with running(config_of(tmp_path, toml)) as service:
        limits = [(await service.check(key, **more)).json()["limit"] for key, more in (
            ("42", {}), ("43", {}), ("43", {"tier": "vip"}), ("44", {"tier": "unknown"}))]  # fmt: skip
        assert limits == [9, 3, 9, 3]


async def test_a_shadow_rule_is_told_and_never_refuses(tmp_path):
    async with running(config_of(tmp_path, RULES + "shadow = true\n")) as service:
        await service.check("42", cost=3)
        shadowed = await service.check("42")
        assert (shadowed.status_code, shadowed.json()["shadowed"]) == (200, ["api"])


@pytest.mark.parametrize("dialect", ["draft-11", "draft-07", "draft-06", "none"])
async def test_the_dialect_of_the_headers_is_that_of_the_file(tmp_path, dialect):
    toml = f'[limits]\ndialect = "{dialect}"\n' + RULES
    async with running(config_of(tmp_path, toml)) as service:
        headers = (await service.check("42")).headers
        assert ("ratelimit-remaining" in headers) == (dialect == "draft-06")
        assert ("ratelimit" in headers) == (dialect in ("draft-11", "draft-07"))


HOSTILE = [
    (b"", 400, "bad_body"),
    (b"{", 400, "bad_body"),
    (b"[]", 400, "bad_body"),
    (b"\xff\xfe", 400, "bad_body"),
    (b"[" * 100_000, 400, "bad_body"),
    (b'{"key": "\\ud800"}', None, None),
    (b'{"key": "a\\u0000b"}', 200, None),
    (b'{"key": ""}', 422, "invalid_key"),
    (b'{"key": {}}', 422, "invalid_key"),
    (b'{"key": true}', 400, "bad_body"),
    (b'{"key": 1.5}', 400, "bad_body"),
    (b'{"key": null}', 422, "invalid_key"),
    (b'{"key": "1", "keys": ["1"]}', 422, "invalid_key"),
    (b'{"keys": []}', 422, "invalid_key"),
    (b'{"keys": ["1", "1"]}', 400, "bad_body"),
    (b'{"key": "1", "cost": 0}', 422, "invalid_cost"),
    (b'{"key": "1", "cost": -1}', 422, "invalid_cost"),
    (b'{"key": "1", "cost": 1e400}', 400, "bad_body"),
    (b'{"key": "1", "cost": 99999999999999999999999999}', None, None),
    (b'{"key": "1", "cost": "1"}', 400, "bad_body"),
    (b'{"key": "1", "csot": 1}', 400, "bad_body"),
    (b'{"key": "1", "rules": ["nobody"]}', 422, "unknown_rule"),
    (b'{"key": "1", "rules": []}', 422, "unknown_rule"),
    (b'{"key": "1", "rules": ["api", "api"]}', 400, "bad_body"),
    (b'{"key": "1", "quota": "ten per second"}', 422, "invalid_quota"),
    (b'{"key": "1", "quota": "1/s", "rules": ["api"]}', 400, "bad_body"),
    (b'{"key": "1", "path": "x"}', 400, "bad_body"),
    (b'{"key": {"ip": "1"}}', 422, "invalid_key"),
    (b'{"key": "' + b"x" * 2000 + b'"}', 422, "invalid_key"),
    (b'{"key": {' + b",".join(b'"p%d": "1"' % at for at in range(40)) + b"}}", 422, "invalid_key"),
    (b'{"key": 1' + b"0" * 5000 + b"}", None, None),
]


@pytest.mark.parametrize(("body", "status", "code"), HOSTILE)
async def test_hostile_bodies_get_a_clear_error_and_never_a_500(tmp_path, store, body, status, code):
    async with running(config_of(tmp_path, RULES, store)) as service:
        for path in ("/v1/check", "/v1/peek", "/v1/refund", "/v1/leases"):
            answer = await service.http.post(path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code < 500, answer.text
            if status is not None and path == "/v1/check":
                assert answer.status_code == status, answer.text
                assert code is None or answer.json()["code"] == code
            assert answer.status_code < 400 or answer.json()["detail"]


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/v1/check", {}, 405),
        ("POST", "/healthz", {}, 405),
        ("GET", "/nothing", {}, 404),
        ("POST", "/v1/nothing", {}, 404),
        ("POST", "/v1/leases/lse_x", {"content-type": "application/json"}, 404),
        ("POST", "/v1/check", {"content-type": "text/plain"}, 415),
        ("POST", "/v1/check", {}, 415),
        ("GET", "/refused.json?top=x", {}, 422),
        ("GET", "/refused.json?window_s=99999999999999999999", {}, 422),
    ],
)
async def test_the_wrong_path_method_or_type_is_told(tmp_path, method, path, headers, status):
    async with running(config_of(tmp_path, RULES)) as service:
        answer = await service.http.request(method, path, headers=headers, content=b"{}" if method == "POST" else None)
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"


async def test_batches_bodies_and_keys_are_bounded(tmp_path):
    async with running(config_of(tmp_path, RULES, max_batch=2, max_body_bytes=1024)) as service:
        assert (await service.post("/v1/batch", {"checks": [{"key": "1"}] * 3})).status_code == 422
        assert (await service.post("/v1/batch", {"checks": []})).status_code == 422
        assert (await service.check("x" * 2000)).status_code == 413


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GARBAGE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"".join(b"x-%d: 1\r\n" % at for at in range(200)) + b"\r\n", b"431"),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"431"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 300_000, b"431"),
        (b"POST /v1/check HTTP/1.1\r\ncontent-length: 99999999\r\n\r\n", b"413"),
        (b"POST /v1/check HTTP/1.1\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}", b"400"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"4"),
        (b"POST /v1/check HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
         + b"ffff\r\n" + b"a" * 65535 + b"\r\n" + b"fffff\r\n" + b"a" * 1_000_000, b"413"),
        (b"GET /healthz HTTP/1.1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n", b"200"),
    ],
)  # fmt: skip
async def test_what_is_no_proper_request_is_refused_and_hung_up_on(tmp_path, sent, status):
    async with running(config_of(tmp_path, RULES)) as service:
        host, port = service.url.rstrip("/").removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 " + status), answer[:100]
        assert answer.count(b"HTTP/1.1 ") == 1
        assert (await service.http.get("/healthz")).status_code == 200


async def test_requests_sent_together_are_answered_in_order(tmp_path, store):
    async with running(config_of(tmp_path, RULES, store)) as service:
        host, port = service.url.rstrip("/").removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        body = b'{"key":"42"}'
        one = b"POST /v1/check HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
            len(body),
            body,
        )
        writer.write(one * 4 + b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 20)
        assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 3 + [b"429", b"200"]
        assert answer.endswith(b'{"status":"ok"}')
        writer.close()


@pytest.mark.parametrize(
    ("behind", "statuses"),
    [(b"GARBAGE\r\n\r\n", [b"200", b"400"]), (b"GET / HTTP/1.1\r\n\r\n" * (MAX_PIPELINED + 5), [b"200", b"503"])],
)
async def test_what_cannot_be_read_is_told_after_the_answer_before_it(behind, statuses):
    """The error was sent first, so it looked like the answer to the request before it, whose own answer then failed."""
    decided, wrong = asyncio.Event(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: wrong.append(context))

    async def handle(request: Request) -> Response:
        await decided.wait()
        return Response(200, b"{}", ())

    connections = Connections(handle, max_body_bytes=1000, max_connections=10)
    server = await asyncio.get_running_loop().create_server(connections.connect, "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"GET / HTTP/1.1\r\n\r\n" + behind)
        [connection] = await eventually(lambda: connections.open)
        await eventually(lambda: connection._closing)
        decided.set()
        answer = await asyncio.wait_for(reader.read(), 20)
        assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == statuses
        writer.close()
        await eventually(lambda: not connections.open)
    assert wrong == []


async def test_too_many_connections_are_told_so(tmp_path):
    async with running(config_of(tmp_path, RULES, max_connections=1)) as service:
        assert (await service.http.get("/healthz")).status_code == 200  # keeps its connection
        host, port = service.url.rstrip("/").removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        assert (await reader.read()).startswith(b"HTTP/1.1 503")
        writer.close()


async def test_with_a_token_only_health_is_open(tmp_path):
    async with running(config_of(tmp_path, RULES, token="s3cret")) as service:
        for path in ("/v1/check", "/metrics", "/refused", "/refused.json"):
            answer = await service.http.request("POST" if path == "/v1/check" else "GET", path)
            assert answer.status_code == 401
            assert "Bearer" in answer.headers["www-authenticate"]
        assert (await service.http.get("/readyz")).status_code == 200
        bearer, basic = "Bearer s3cret", "Basic " + base64.b64encode(b"me:s3cret").decode()
        for given, status in ((bearer, 200), (basic, 200), ("Bearer other", 401), ("Basic %%%", 401), ("s3cret", 401)):
            answer = await service.http.get("/refused.json", headers={"authorization": given})
            assert answer.status_code == status, given
        allowed = await service.post("/v1/check", {"key": "42"}, authorization=bearer)
        assert allowed.status_code == 200


@pytest.mark.parametrize("algorithm", ["fixed_window", "sliding_log", "sliding_counter", "token_bucket", "leaky_queue"])
async def test_every_algorithm_answers_over_http(tmp_path, algorithm):
    async with running(config_of(tmp_path, RULES)) as service:
        asked = {"key": "42", "quota": f"2/30 days {algorithm}"}
        assert [(await service.post("/v1/check", asked)).status_code for _ in range(3)] == [200, 200, 429]
