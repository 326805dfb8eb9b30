"""Each limiter example lets the first code through, refuses the second, and serves the rest."""

import asyncio
import importlib
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from frontrow.limits import Throttled

ROOT = Path(__file__).parents[2]
ASK_DJANGO = """
import io, sys
from examples.limiter import django_app
sys.path.insert(0, "examples/limiter")

def ask(method, path):
    told = []
    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "SERVER_NAME": "shop", "SERVER_PORT": "80",
               "REMOTE_ADDR": "192.0.2.1", "wsgi.input": io.BytesIO(), "wsgi.url_scheme": "http"}
    answer = django_app.app(environ, lambda status, headers: told.append(status[:3]))
    answer.close()
    return told[0]

print(ask("POST", "/codes"), ask("POST", "/codes"), ask("GET", "/"))
"""


def test_every_example_is_listed_with_how_to_start_it() -> None:
    listed = (ROOT / "examples" / "README.md").read_text()
    names = {path.relative_to(ROOT / "examples").as_posix() for path in (ROOT / "examples").rglob("*.py")}
    assert {name for name in names if name not in listed} == set()


@pytest.mark.parametrize("name", ["fastapi_app", "litestar_app"])
async def test_an_asgi_example_limits_its_route(name: str) -> None:
    app = importlib.import_module(f"examples.limiter.{name}").app
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        answers = [await client.post("/codes"), await client.post("/codes"), await client.get("/")]
        assert [answer.status_code for answer in answers] == [200, 429, 200]
        assert int(answers[1].headers["retry-after"]) > 0
        assert "ratelimit" in answers[2].headers


async def test_the_fastapi_example_counts_each_user_alone() -> None:
    app = importlib.import_module("examples.limiter.fastapi_app").app
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://shop") as client:
        asked = [await client.post("/codes", headers={"x-user": user}) for user in ("ada", "ada", "bo")]
    assert [answer.status_code for answer in asked] == [200, 429, 200]


def test_the_flask_example_limits_its_route_and_refuses_in_its_own_words() -> None:
    client = importlib.import_module("examples.limiter.flask_app").app.test_client()
    answers = [client.post("/codes"), client.post("/codes"), client.get("/")]
    assert [answer.status_code for answer in answers] == [200, 429, 200]
    assert answers[1].json["say"] == "slow down"


def test_the_django_example_limits_its_view() -> None:
    """In a process of its own: Django's settings are made once per process."""
    told = subprocess.run([sys.executable, "-c", ASK_DJANGO], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["200", "429", "200"]


def test_the_celery_example_limits_each_customer(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDIS_URL", redis_url)
    sys.modules.pop("examples.limiter.celery_tasks", None)
    tasks = importlib.import_module("examples.limiter.celery_tasks")
    try:
        assert [tasks.send_report(customer) for customer in ("ada", "bo", "ada")] == ["ada", "bo", "ada"]
        with pytest.raises(Throttled, match="the limit of 2"):
            tasks.send_report("ada")
    finally:
        tasks.send_report.run.limiter.close()
        tasks.app.close()


class _Busy(BaseHTTPRequestHandler):
    """Refuses its first request and wants to be asked again at once."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        self.send_response(429 if self.asked == 1 else 200)
        self.send_header("retry-after", "0")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *about: object) -> None: ...


def test_the_httpx_example_obeys_a_refusal() -> None:
    from examples.limiter.httpx_client import fetch

    with HTTPServer(("127.0.0.1", 0), _Busy) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            told = asyncio.run(fetch(f"http://127.0.0.1:{server.server_port}/", 3, rate="1000/second"))
        finally:
            server.shutdown()
            serving.join()
    assert told == [200, 200, 200]
    assert _Busy.asked == 4
