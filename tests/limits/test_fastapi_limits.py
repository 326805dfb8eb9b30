"""The limiter in real FastAPI and Starlette applications: dependency, decorator, signed-in users, own bodies."""

import asyncio
import threading
from typing import Annotated, Any

import httpx
import pytest
from fastapi import Depends, FastAPI, Header, HTTPException, Request, Response, WebSocket
from fastapi.responses import JSONResponse
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from frontrow.core.errors import ConfigError
from frontrow.limits import Quota
from frontrow.limits.http import fastapi as limits_fastapi
from frontrow.limits.http import starlette as limits_starlette
from frontrow.limits.http.asgi import RateLimitMiddleware
from frontrow.limits.http.fastapi import RateLimited, limit, limited, problem_response
from frontrow.limits.http.route_limits import MAX_QUOTAS
from frontrow.testing.clock import ManualClock

FIELDS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy"}


async def ask(app: Any, *requests: str, **headers: str) -> list[httpx.Response]:
    """Answers to requests like "GET /codes", in turn."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
        return [await client.request(*request.split(" "), headers=named) for request in requests]


def statuses(answers: list[httpx.Response]) -> list[int]:
    return [answer.status_code for answer in answers]


async def test_a_dependency_answers_429_with_headers_and_counts_each_route_by_itself():
    app = FastAPI()
    five = limit("2/minute")

    @app.get("/codes/{number}", dependencies=[Depends(five)])
    async def code(number: int) -> int:
        return number

    @app.get("/other", dependencies=[Depends(five)])
    def other() -> str:
        return "served"

    answers = await ask(app, "GET /codes/1", "GET /codes/2", "GET /codes/3", "GET /other")
    assert statuses(answers) == [200, 200, 429, 200]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0", "1"]
    assert all(set(answer.headers) >= FIELDS for answer in answers)
    assert int(answers[2].headers["retry-after"]) >= 1
    assert answers[2].json()["detail"].startswith("The limit of 2 is used up; try again in ")


async def test_a_dependency_counts_a_request_that_fastapi_finds_invalid_and_a_decorator_does_not():
    app = FastAPI()

    @app.get("/counted/{number}", dependencies=[Depends(limit("1/minute"))])
    async def counted(number: int) -> int:
        return number

    @app.get("/decorated/{number}")
    @limited("1/minute")
    async def decorated(number: int) -> int:
        return number

    assert statuses(await ask(app, "GET /counted/x", "GET /counted/1")) == [422, 429]
    assert statuses(await ask(app, "GET /decorated/x", "GET /decorated/x", "GET /decorated/1")) == [422, 422, 200]


@pytest.mark.parametrize("makes_response", [False, True], ids=["value", "response"])
async def test_a_limit_writes_its_headers_in_place_of_the_endpoints_own(makes_response: bool):
    app = FastAPI()

    @app.get("/")
    @limited("2/minute", name="in-place")
    async def home(response: Response) -> Any:
        own = {"X-RateLimit-Limit": "7", "X-Kept": "yes"}
        response.headers.update(own)
        return JSONResponse("served", headers=own) if makes_response else "served"

    [answer] = await ask(app, "GET /")
    assert answer.headers.get_list("x-ratelimit-limit") == ["2"]
    assert answer.headers["x-kept"] == "yes"


async def test_a_decorator_works_on_any_endpoint_and_on_what_it_returns():
    app = FastAPI()

    @app.get("/plain")
    @limited("1/minute")
    def plain(word: str = "served") -> dict[str, str]:
        return {"word": word}

    @app.post("/response", status_code=201)
    @limited("1/minute")
    async def own(request: Request, response: Response) -> Any:
        assert (request.method, response.status_code) == ("POST", None)
        return JSONResponse("served")

    answers = await ask(app, "GET /plain?word=fine", "GET /plain", "POST /response", "POST /response")
    assert statuses(answers) == [200, 429, 200, 429]
    assert answers[0].json() == {"word": "fine"}
    assert all(set(answer.headers) >= FIELDS for answer in answers)
    schema = app.openapi()["paths"]["/plain"]["get"]
    assert [parameter["name"] for parameter in schema["parameters"]] == ["word"], "nothing of ours shows"


async def test_a_decorator_uses_no_thread(monkeypatch: pytest.MonkeyPatch):
    """A dependency that is a plain function runs in the thread pool: the request waits for a free thread."""
    app = FastAPI()

    @app.get("/")
    @limited("9/minute")
    async def home() -> str:
        return "served"

    def use_thread(*_: Any, **__: Any) -> Any:
        raise AssertionError("a thread was asked for")

    monkeypatch.setattr("anyio.to_thread.run_sync", use_thread)
    assert statuses(await ask(app, "GET /")) == [200]


async def test_a_limited_endpoint_answers_while_plain_endpoints_hold_every_thread():
    app, leave, busy = FastAPI(), threading.Event(), asyncio.Semaphore(0)
    loop = asyncio.get_running_loop()

    @app.get("/slow")
    def slow() -> str:
        loop.call_soon_threadsafe(busy.release)
        leave.wait(20)
        return "served"

    @app.get("/")
    @limited("9/minute")
    async def home() -> str:
        return "served"

    slow_ones = [asyncio.create_task(ask(app, "GET /slow")) for _ in range(40)]  # as many as the pool has
    try:
        for _ in range(40):
            await asyncio.wait_for(busy.acquire(), 20)
        assert statuses(await asyncio.wait_for(ask(app, "GET /"), 5)) == [200]
    finally:
        leave.set()
        answers = await asyncio.gather(*slow_ones)
    assert [statuses(each) for each in answers] == [[200]] * 40


class User:
    def __init__(self, id: str) -> None:
        self.id = id


async def signed_in(x_user: Annotated[str | None, Header()] = None) -> User | None:
    if x_user == "stranger":
        raise HTTPException(401, "sign in")
    return User(x_user) if x_user else None


async def test_the_signed_in_user_of_a_dependency_is_the_key():
    app = FastAPI()

    @app.get("/me", dependencies=[Depends(limit("1/minute", user=signed_in))])
    async def me(user: Annotated[User, Depends(signed_in)]) -> str:
        return user.id

    assert statuses(await ask(app, "GET /me", "GET /me", x_user="ann")) == [200, 429]
    assert statuses(await ask(app, "GET /me", x_user="bob")) == [200]
    assert statuses(await ask(app, "GET /me", "GET /me", x_user="stranger")) == [401, 401], "not counted"
    nameless = (await ask(app, "GET /me"))[0]
    assert (nameless.status_code, nameless.json()["detail"][:24]) == (400, "this request has no call")


async def test_the_key_may_be_an_async_function_that_reads_the_body():
    app = FastAPI()

    async def email(request: Any) -> str:
        return str((await request.json())["email"]).casefold()

    @app.post("/sign-in", dependencies=[Depends(limit("1/minute", key=email))])
    async def sign_in(body: dict[str, str]) -> str:
        return body["email"]

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop.test") as client:
        answers = [await client.post("/sign-in", json={"email": each}) for each in ("a@x", "A@x", "b@x")]
    assert statuses(answers) == [200, 429, 200]
    assert answers[2].json() == "b@x"


async def test_the_quota_may_be_computed_per_request():
    app = FastAPI()

    async def quota(request: Any) -> Any:
        return {"vip": Quota.parse("3/minute"), "free": "1/minute", "staff": None}[request.headers["x-plan"]]

    @app.get("/", dependencies=[Depends(limit(quota))])
    async def home() -> str:
        return "served"

    assert statuses(await ask(app, *["GET /"] * 3, x_plan="free")) == [200, 429, 429]
    assert statuses(await ask(app, *["GET /"] * 4, x_plan="vip")) == [200, 200, 200, 429]
    assert statuses(await ask(app, *["GET /"] * 4, x_plan="staff")) == [200] * 4
    counts = limits_fastapi.RateLimits().routes.make(quota).counts
    for number in range(1, MAX_QUOTAS + 1):
        counts.limits_of(f"{number}/minute")
    with pytest.raises(ConfigError, match=f"more than {MAX_QUOTAS} different quotas"):
        counts.limits_of("999/minute")


async def test_exception_handlers_give_refusals_a_body_of_their_own():
    app = FastAPI()

    @app.get("/", dependencies=[Depends(limit("1/minute"))])
    async def home() -> str:
        return "served"

    app.add_exception_handler(RateLimited, problem_response)
    refused = (await ask(app, "GET /", "GET /"))[1]
    assert (refused.status_code, refused.headers["content-type"]) == (429, "application/problem+json")
    assert refused.json()["violated-policies"] == ["limit-1-60s"]

    @app.exception_handler(RateLimited)
    async def slow_down(request: Any, error: RateLimited) -> JSONResponse:
        return JSONResponse({"retry_s": error.decision.retry_after_s}, error.status_code, error.headers)

    app.middleware_stack = None
    refused = (await ask(app, "GET /"))[0]
    assert refused.json()["retry_s"] > 0
    assert set(refused.headers) >= FIELDS


async def test_a_middleware_outside_writes_the_headers_of_the_tightest_limit_once():
    app = FastAPI()

    @app.get("/", dependencies=[Depends(limit("3/minute")), Depends(limit("2/hour", name="tight"))])
    async def home() -> Response:
        return Response("served")  # FastAPI drops the headers of dependencies here; the middleware keeps them

    app.add_middleware(RateLimitMiddleware, rules="100/minute")
    answers = await ask(app, "GET /", "GET /", "GET /")
    assert statuses(answers) == [200, 200, 429]
    assert [answer.headers.get_list("x-ratelimit-remaining") for answer in answers] == [["1"], ["0"], ["0"]]
    assert answers[0].headers["ratelimit-policy"] == '"tight";q=2;w=3600'


async def test_a_named_limit_is_shared_and_a_second_one_of_that_name_must_be_the_same():
    limits = limits_fastapi.RateLimits(clock=ManualClock(), exempt_users=["staff"], identify={"user": "header:x-user"})
    app = FastAPI()
    for path in ("/a", "/b"):
        app.get(path, dependencies=[Depends(limits.limit("2/minute", name="codes", cost=lambda request: 2))])(lambda: 1)
    assert statuses(await ask(app, "GET /a", "GET /b")) == [200, 429]
    assert statuses(await ask(app, "GET /a", "GET /b", x_user="staff")) == [200, 200]
    assert limits.metrics.snapshot()["codes"]["refused"] == 1
    with pytest.raises(ConfigError, match="two limits are named 'codes'"):
        limits.limit("3/minute", name="codes")
    await limits.aclose()


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: limit(), "a limit needs quotas"),
        (lambda: limit("1/minute", statuses=(401,)), "a dependency does not see the response"),
        (lambda: limit("1/minute", key="path"), "leave path out"),
        (lambda: limited("1/minute", key=signed_in)(lambda: 1), "is a plain function, and its limit has an async"),
        (lambda: limit("1/minute", key="shoe_size"), "key part 'shoe_size' is unknown"),
        (lambda: limits_fastapi.RateLimits(rules="1/minute"), "rules belongs to the middleware"),
        (lambda: limits_fastapi.RateLimits(on_refused=print), "exception handler for RateLimited"),
        (lambda: limited("1/minute", key="post:email")(lambda: 1), "is a plain function, and its limit has an async"),
    ],
)
def test_a_wrong_limit_is_an_error_at_once(make, expected):
    with pytest.raises(ConfigError, match=expected):
        make()


async def test_starlette_endpoints_are_limited_and_count_only_failed_sign_ins():
    limits = limits_starlette.RateLimits(clock=ManualClock())

    @limits.limited("2/minute", statuses=(401,))
    async def sign_in(request: Any) -> Any:
        if request.method == "PUT":
            raise HTTPException(401)
        return PlainTextResponse("served", 401 if request.method == "PATCH" else 200)

    @limits_starlette.limited("1/minute", key="user")
    def me(request: Any) -> Any:
        return PlainTextResponse("served")

    methods = ["POST", "PUT", "PATCH", "GET"]
    app = Starlette(routes=[Route("/sign-in", sign_in, methods=methods), Route("/me", me)])
    answers = await ask(app, "POST /sign-in", "PUT /sign-in", "POST /sign-in", "PATCH /sign-in", "POST /sign-in")
    assert statuses(answers) == [200, 401, 200, 401, 429]
    assert [answer.headers.get("x-ratelimit-remaining") for answer in answers] == ["2", None, "1", "0", "0"]
    assert statuses(await ask(app, "GET /me")) == [400], "nobody is signed in"
    with pytest.raises(ConfigError, match="must take the request"):
        await limits.limited("1/minute")(signed_in)()


async def test_a_dependency_of_the_whole_application_limits_websockets_too():
    app = FastAPI(dependencies=[Depends(limit("1/minute"))])

    @app.websocket("/live")
    async def live(socket: WebSocket) -> None:
        await socket.accept()
        await socket.close()

    async def connect() -> Any:
        sent: list[Any] = []
        scope = {"type": "websocket", "path": "/live", "headers": [], "client": ("203.0.113.1", 5), "query_string": b""}
        scope |= {"extensions": {"websocket.http.response": {}}}

        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        return sent[0]

    assert (await connect())["type"] == "websocket.accept"
    refused = await connect()
    assert (refused["type"], refused["status"]) == ("websocket.http.response.start", 429)


async def test_every_limit_keeps_its_metrics_however_many_there_are():
    limits = limits_fastapi.RateLimits()
    app = FastAPI()
    for number in range(6):
        app.get(f"/{number}", dependencies=[Depends(limits.limit("9/minute", name=f"n{number}"))])(lambda: 1)
    await ask(app, *[f"GET /{number}" for number in range(6)])
    counted = limits.metrics.snapshot()
    assert {name: each["allowed"] for name, each in counted.items()} == {f"n{number}": 1 for number in range(6)}


async def test_quotas_that_differ_only_in_their_algorithm_are_two_limits():
    app = FastAPI(dependencies=[Depends(limit("3/minute", "3/minute sliding_log", "3/minute burst 2"))])
    app.get("/")(lambda: 1)
    [answer] = await ask(app, "GET /")
    policies = '"limit-3-60s";q=3;w=60, "limit-3-60s-sliding_log";q=3;w=60, "limit-3-60s-token_bucket-2";q=2;w=40'
    assert answer.headers["ratelimit-policy"] == policies


async def test_routes_of_several_servers_share_a_redis(redis_url):
    servers = [limits_fastapi.RateLimits(redis_url, deadline_s=5.0) for _ in range(2)]
    apps = []
    for limits in servers:
        app = FastAPI()

        @app.post("/sign-in", status_code=201)
        @limits.limited("3/minute sliding_log", statuses=(401,))
        async def sign_in(fail: bool = False) -> Any:
            return JSONResponse("wrong", 401) if fail else "fine"

        apps.append(app)
    assert [statuses(await ask(app, "POST /sign-in", "POST /sign-in")) for app in apps] == [[201, 201]] * 2
    failed = [(await ask(apps[number % 2], "POST /sign-in?fail=1"))[0] for number in range(4)]
    assert statuses(failed) == [401, 401, 401, 429]
    assert [answer.headers["x-ratelimit-remaining"] for answer in failed] == ["2", "1", "0", "0"]
    for limits in servers:
        await limits.aclose()
