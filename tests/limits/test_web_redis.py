"""L9, L10, L14: the middleware over a real Redis-protocol server: shared counts, store down, recovery, WebSockets."""

import asyncio
import json

import pytest

from frontrow.limits.http import asgi, wsgi
from frontrow.limits.rules import RuleBook
from tests.contracts.rate_limit_middleware import rule
from tests.limits.limited_apps import Uvicorn, call_asgi, flask_app, starlette_app
from tests.support.eventually import eventually
from tests.support.servers import Valkey

PEER = "203.0.113.1"


async def test_l10_two_servers_share_their_counts_and_exactly_n_of_80_concurrent_requests_pass(redis_url):
    rules = [rule("user", "25/minute", "user"), rule("all", "1000/minute")]
    apps = [
        asgi.RateLimitMiddleware(
            starlette_app([]), rules, redis_url, identify={"user": "header:x-user"}, deadline_s=5.0
        )
        for _ in range(2)
    ]
    results = await asyncio.gather(*(call_asgi(apps[i % 2], "GET", "/", {"x-user": "7"}, PEER) for i in range(80)))
    assert [answer.status for answer in results].count(200) == 25
    assert [answer.status for answer in results].count(429) == 55
    for app in apps:
        await app.aclose()


def test_l9_the_wsgi_twin_counts_in_the_same_store(redis_url):
    app = flask_app([])
    app.wsgi_app = wsgi.RateLimitMiddleware(app.wsgi_app, [rule("all", "2/minute", "ip")], redis_url, deadline_s=5.0)
    client = app.test_client()
    assert [client.get("/").status_code for _ in range(3)] == [200, 200, 429]
    app.wsgi_app.close()


@pytest.mark.parametrize("policy", ["open", "local"])
async def test_l14_a_decision_that_speaks_of_a_shadow_rule_is_answered_like_any_other(policy, own_valkey: Valkey):
    rules = [
        rule("trial", "1/minute", shadow=True, on_store_down=policy),
        rule("all", "5/minute", on_store_down="open"),
    ]
    app = asgi.RateLimitMiddleware(starlette_app([]), rules, own_valkey.url, deadline_s=5.0)
    own_valkey.kill()
    for _ in range(3):
        answer = await call_asgi(app, "GET", "/", {}, PEER)
        assert (answer.status, answer.headers["ratelimit-policy"]) == (200, '"all";q=5;w=60')
    await app.aclose()


@pytest.mark.parametrize(("policy", "status"), [("open", 200), ("closed", 503), ("local", 200)])
async def test_l14_a_store_that_is_down_is_answered_by_the_rules_policy_and_counted(policy, status, own_valkey: Valkey):
    rules = [rule("all", "3/minute", "ip", on_store_down=policy)]
    app = asgi.RateLimitMiddleware(starlette_app([]), rules, own_valkey.url, deadline_s=5.0)
    assert (await call_asgi(app, "GET", "/", {}, PEER)).status == 200
    own_valkey.kill()
    answer = await call_asgi(app, "GET", "/", {}, PEER)
    assert answer.status == status
    assert {"x-ratelimit-limit", "ratelimit", "ratelimit-policy"} <= set(answer.headers)
    if policy == "closed":
        assert json.loads(answer.body)["type"].endswith("#temporary-reduced-capacity")
        assert int(answer.headers["retry-after"]) >= 1
    if policy == "local":
        results = [(await call_asgi(app, "GET", "/", {}, PEER)).status for _ in range(5)]
        assert results.count(200) == 2, "three a minute in this process, one of them above"
    assert app.limits.metrics.snapshot()["all"]["store_errors"] >= 1
    await app.aclose()


async def test_l14_a_stalled_store_does_not_hold_up_the_answer_and_comes_back(own_valkey: Valkey):
    app = asgi.RateLimitMiddleware(
        starlette_app([]), [rule("all", "9/minute", "ip", on_store_down="open")], own_valkey.url, deadline_s=0.05
    )
    await call_asgi(app, "GET", "/", {}, PEER)
    before = app.limits.metrics.snapshot()["all"]["store_errors"]
    own_valkey.pause()
    try:
        answer = await asyncio.wait_for(call_asgi(app, "GET", "/", {}, PEER), 60)
        assert answer.status == 200
        assert app.limits.metrics.snapshot()["all"]["store_errors"] == before + 1
    finally:
        own_valkey.resume()

    async def is_answered_by_the_store() -> bool:
        before = app.limits.metrics.snapshot()["all"]["store_errors"]
        await call_asgi(app, "GET", "/", {}, PEER)
        return app.limits.metrics.snapshot()["all"]["store_errors"] == before

    await eventually(is_answered_by_the_store, every_s=0.05)
    await app.aclose()


async def test_l9_on_a_cluster_rules_that_share_a_part_are_one_step_and_others_go_slot_by_slot(redis_cluster):
    rules = [rule("address", "9/minute", "ip"), rule("holds", "2/minute", "ip", "endpoint", paths=("/holds",))]
    app = asgi.RateLimitMiddleware(starlette_app([]), rules, redis_cluster.url, deadline_s=5.0)
    results = [(await call_asgi(app, "GET", "/holds", {}, PEER)).status for _ in range(4)]
    assert results == [200, 200, 429, 429]
    left = (await call_asgi(app, "GET", "/", {}, PEER)).headers["x-ratelimit-remaining"]
    assert left == "6", "a refused rule burns nothing of the others"
    await app.aclose()
    apart = [rule("each", "5/minute", "ip"), rule("everybody", "2/minute")]
    app = asgi.RateLimitMiddleware(starlette_app([]), apart, redis_cluster.url, deadline_s=5.0)
    results = [(await call_asgi(app, "GET", "/", {}, PEER)).status for _ in range(4)]
    assert results == [200, 200, 429, 429]
    await app.aclose()


async def test_l16_reloading_many_times_closes_the_connections_of_rules_long_replaced(own_valkey: Valkey):
    book = RuleBook([rule("all", "1000/minute", "ip")])
    app = asgi.RateLimitMiddleware(starlette_app([]), book, own_valkey.url, deadline_s=5.0)
    for number in range(12):
        assert (await call_asgi(app, "GET", "/", {}, PEER)).status == 200
        book.replace([rule("all", f"{1001 + number}/minute", "ip")])
    await eventually(lambda: own_valkey.command("CLIENT", "LIST").count(b"id="), until=lambda open_: open_ <= 8)
    assert app.limits.metrics.snapshot()["all"]["allowed"] == 12
    await app.aclose()


async def websocket_app(scope, receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 1000})


async def call_websocket(app, extensions):
    sent = []

    async def receive():
        return {"type": "websocket.connect"}

    async def send(message):
        sent.append(message)

    scope = {"type": "websocket", "path": "/live", "root_path": "", "headers": [], "client": (PEER, 1)}
    await app({**scope, "extensions": extensions}, receive, send)
    return sent


async def test_l13_websocket_handshakes_count_as_get_and_are_refused_with_429_where_the_server_can():
    app = asgi.RateLimitMiddleware(websocket_app, [rule("live", "1/minute", "ip", methods=("GET",))])
    accepted = await call_websocket(app, {})
    assert (b"x-ratelimit-remaining", b"0") in accepted[0]["headers"]
    start, body = await call_websocket(app, {"websocket.http.response": {}})
    assert (start["type"], start["status"], body["type"]) == (
        "websocket.http.response.start",
        429,
        "websocket.http.response.body",
    )
    assert [message["type"] for message in await call_websocket(app, {})] == ["websocket.close"]


async def test_l13_lifespan_messages_pass_untouched():
    seen = []

    async def app(scope, receive, send):
        seen.append((scope["type"], receive, send))

    def receive(): ...
    def send(): ...

    await asgi.RateLimitMiddleware(app, "1/minute")({"type": "lifespan"}, receive, send)
    assert seen == [("lifespan", receive, send)]


def test_l13_over_a_real_server_a_streamed_answer_keeps_its_own_headers_and_a_crash_still_limits():
    async def app(scope, receive, send):
        if scope["path"] == "/crash":
            raise RuntimeError("on purpose")
        await send({"type": "http.response.start", "status": 200, "headers": ((b"x-own", b"1"), (b"x-own", b"2"))})
        for part in (b"a", b"b", b"c"):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body"})

    server = Uvicorn(asgi.RateLimitMiddleware(app, "2/minute"))
    try:
        streamed = server.send("GET", "/", {"host": "shop.test"})
        assert (streamed.status, streamed.body, streamed.headers["x-own"]) == (200, b"abc", "2")
        assert streamed.headers["x-ratelimit-remaining"] == "1"
        assert server.send("GET", "/crash", {"host": "shop.test"}).status == 500
        assert server.send("GET", "/", {"host": "shop.test"}).status == 429
    finally:
        server.close()
