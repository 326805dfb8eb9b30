"""The gate's pages without a browser: what their policy allows beyond the others', and the files of the app."""

import json
import re
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.cookies import SESSION_COOKIE
from frontrow.web.site.assets import site_assets
from tests.boxoffice.people.support import member, on_sale
from tests.web.api.support import a_client, a_platform

BROWSER = {"accept": "text/html,application/xhtml+xml", "accept-language": "en"}


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody with the gate's role, and a show called evt_door."""
    async with a_platform(tmp_path) as platform, a_client(platform) as asking:
        person = await member(platform, Role.DOOR)
        await on_sale(platform, id="evt_door", name='Aurora </script><b onclick="x">')
        asking.headers = httpx.Headers(BROWSER | {"cookie": f"{SESSION_COOKIE}={person.session}"})
        yield asking


async def test_only_the_gates_pages_may_run_webassembly_and_open_the_camera(client: httpx.AsyncClient) -> None:
    for path in ("/door", "/door/evt_door"):
        answer = await client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self' 'wasm-unsafe-eval';" in policy
        assert policy.replace("'wasm-unsafe-eval'", "").count("unsafe") == 0
        assert policy.endswith("require-trusted-types-for 'script'; trusted-types frontrow-door")
        assert "camera=(self)" in answer.headers["permissions-policy"]
        assert "private, no-store" in answer.headers["cache-control"]
    for path in ("/", "/organiser"):
        answer = await client.get(path)
        assert "unsafe" not in answer.headers["content-security-policy"]
        assert "camera=()" in answer.headers["permissions-policy"]


async def test_a_shows_name_cannot_break_out_of_the_page(client: httpx.AsyncClient) -> None:
    answer = await client.get("/door/evt_door")
    assert "</script><b" not in answer.text
    told = re.search(r'id="gate-data">(.*?)</script>', answer.text)
    assert told is not None
    assert json.loads(told[1])["event"]["name"].startswith("Aurora </script>")


async def test_the_service_worker_is_allowed_the_gate_and_lists_files_that_exist(client: httpx.AsyncClient) -> None:
    answer = await client.get("/door/sw.js")
    assert answer.headers["service-worker-allowed"] == "/door"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    told = json.loads(answer.text.partition("self.gate = ")[2].partition(";\n")[0])
    assert told["version"] == site_assets().hash
    for path in told["files"]:
        assert (await client.get(path)).status_code == 200, path
    names = [path.rpartition("/")[2] for path in told["files"]]
    for needed in (
        "gate-page.js",
        "choose.js",
        "gate-check.js",
        "scan-worker.js",
        "zxing_reader.wasm",
        "share.js",
        "gate.css",
    ):
        assert needed in names
    assert "sw.js" not in names


async def test_the_worker_that_reads_pictures_has_a_policy_of_its_own(client: httpx.AsyncClient) -> None:
    answer = await client.get(site_assets().url("js/gate/scan-worker.js"))
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
    assert "content-security-policy" not in (await client.get(site_assets().url("js/gate/gate-page.js"))).headers


async def test_the_manifest_names_icons_of_the_size_they_have(client: httpx.AsyncClient) -> None:
    answer = await client.get("/door/app.webmanifest", headers={"accept-language": "de"})
    assert answer.headers["content-type"].startswith("application/manifest+json")
    manifest = answer.json()
    assert (manifest["short_name"], manifest["lang"], manifest["scope"]) == ("Einlass", "de", "/door")
    for icon in manifest["icons"]:
        body = (await client.get(icon["src"])).content
        wide, high = struct.unpack(">II", body[16:24])
        assert icon["sizes"] == f"{wide}x{high}"
