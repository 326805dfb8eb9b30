"""`/metrics` is for Prometheus alone: no spelling of it leads through the shipped nginx, and a server whose metrics
have a port of their own has none on the port of people.
"""

import http.client
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from frontrow.core.errors import ConfigError
from frontrow.settings.platform import read_settings
from frontrow.web.observability.plain_pages import serve_pages
from frontrow.web.platform.metrics import metrics_answer
from frontrow.web.server.platform_server import listen_for_metrics
from tests.deploy.helm_chart import by_kind, container_of, pods
from tests.deploy.metrics_paths import SPELLINGS, status_of
from tests.support.nginx import DeployedNginx
from tests.web.api.support import a_server


class AnswersEverything(http.server.BaseHTTPRequestHandler):
    """A server that would show its figures under any path."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = b"frontrow_http_requests_total 1\n"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def nginx() -> Iterator[DeployedNginx]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AnswersEverything)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with DeployedNginx("upstream.conf", {"127.0.0.1:8000": f"127.0.0.1:{server.server_port}"}) as running:
            yield running
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def test_no_spelling_of_metrics_leads_through_nginx(nginx: DeployedNginx) -> None:
    assert status_of(nginx.port, "/v1/anything")[0] == 200, "the canary: other paths do"
    for path in SPELLINGS:
        status, body = status_of(nginx.port, path)
        assert status in (400, 404), f"{path} is {status} for everybody"
        assert b"frontrow_" not in body


async def test_metrics_on_a_port_of_their_own_are_on_no_other(tmp_path: Path) -> None:
    async with a_server(tmp_path, metrics="127.0.0.1:0") as (platform, address):
        sock = listen_for_metrics(platform.settings.server)
        assert sock is not None
        port = sock.getsockname()[1]
        async with (
            serve_pages(sock, lambda path: metrics_answer(platform, path)),
            httpx.AsyncClient(trust_env=False) as client,
        ):
            for path in ("/metrics", "/metrics/", "/metrics//", "/metrics%2f"):
                assert (await client.get(f"{address}{path}")).status_code == 404, path
            page = await client.get(f"http://127.0.0.1:{port}/metrics")
            assert page.status_code == 200
            assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
            assert "frontrow_http_requests_total{" in page.text
            assert (await client.get(f"http://127.0.0.1:{port}/v1/events")).status_code == 404, "nothing else is there"


async def test_without_the_setting_metrics_are_where_they_were(tmp_path: Path) -> None:
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(trust_env=False) as client:
        assert listen_for_metrics(platform.settings.server) is None
        assert (await client.get(f"{address}/metrics")).status_code == 200


@pytest.mark.parametrize("text", ["8002", "here:", "here:port", "here:70000"])
def test_an_address_that_is_none_stops_the_start(text: str) -> None:
    with pytest.raises(ConfigError, match="server.metrics is"):
        read_settings(None, {"FRONTROW_SERVER_METRICS": text, "FRONTROW_SERVER_DEMO": "true"})


def test_on_kubernetes_only_prometheus_reaches_the_port_of_the_metrics() -> None:
    """The Service of people does not lead to it, the ingress hides all below /metrics, the policy divides them."""
    web = container_of(pods()["web"])
    ports = {port["name"]: port["containerPort"] for port in web["ports"]}
    given = {one["name"]: one.get("value") for one in web["env"]}
    assert given["FRONTROW_SERVER_METRICS"] == f"0.0.0.0:{ports['metrics']}"
    notes = pods()["web"]["metadata"]["annotations"]
    assert (notes["prometheus.io/port"], notes["prometheus.io/path"]) == (str(ports["metrics"]), "/metrics")
    assert [port["targetPort"] for port in by_kind("Service")["frontrow"]["spec"]["ports"]] == ["http"]
    (ingress,) = by_kind("Ingress").values()
    ways = {one["path"]: one["pathType"] for one in ingress["spec"]["rules"][0]["http"]["paths"]}
    assert ways["/metrics"] == "Prefix"
    (policy,) = by_kind("NetworkPolicy").values()
    people, monitoring = [{port["port"] for port in rule["ports"]} for rule in policy["spec"]["ingress"]]
    assert (people, monitoring) == ({"http"}, {"metrics", "health"})
