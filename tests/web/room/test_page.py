"""The waiting-room page: small, strict, readable without scripts (W9), and the forms behind it."""

import base64
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from frontrow.waitingroom.entrance.human_check import HCAPTCHA, RECAPTCHA, TURNSTILE, Captcha, ProofOfWork
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.entrance.used_proofs import MemoryUsedProofs
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.wait_estimate import Reason, Wait
from frontrow.waitingroom.ports import HumanCheck
from frontrow.web.endpoints.room.page import PageSettings, RoomPages
from frontrow.web.endpoints.room.page_texts import wait_text
from frontrow.web.http.messages import EndpointRequest, EndpointResponse
from tests.support.built_files import serving_built
from tests.web.room.conftest import ServedRoom
from tests.web.room.page_size import MAX_PAGE_BYTES
from tests.web.room.simple_room import SimpleRoom

BROWSER = {"Accept": "text/html,application/xhtml+xml"}
FORM = BROWSER | {"Sec-Fetch-Site": "same-origin"}


class Markup(HTMLParser):
    """Collects what a test wants to know about a page."""

    VOID = frozenset({"meta", "input", "rect", "path", "link", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.inline: dict[str, str] = {}
        self.feed(text)
        assert self.open == [], f"left open: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("style", "script"):
            self.inline[self.open[-1]] = data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]

    def by_id(self, wanted: str) -> dict[str, str | None]:
        return next(attrs for _, attrs in self.tags if attrs.get("id") == wanted)


def page(room: SimpleRoom | None = None, check: HumanCheck | None = None, cookie: bytes = b"") -> EndpointResponse:
    room = room or SimpleRoom()
    entry = EntranceLimits({room.event: check} if check else {})
    pages = RoomPages(room, entry, PageSettings(titles=(("aurora", "Aurora <World> Tour"),)))
    return pages.page(room.event, EndpointRequest([(b"Cookie", cookie)] if cookie else [], b"", "127.0.0.1"))


async def waiting(room: SimpleRoom) -> bytes:
    return b"frontrow_from_aurora=0; frontrow_place_aurora=" + (await room.joins.join("aurora")).place_jwt.encode()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The page as a wheel has it, with its script and style minified."""
    with serving_built(tmp_path_factory.mktemp("web") / "built"):
        yield


@pytest.mark.usefixtures("built")
async def test_the_page_is_at_most_14_kb_in_every_state_with_the_longest_message() -> None:
    room = SimpleRoom()
    cookie = await waiting(room)
    await room.set_message("aurora", "ü" * 280)
    for phase, hi, lo in (
        (Phase.OPEN, 0, 0),
        (Phase.PAUSED, 0, 0),
        (Phase.PREQUEUE, 0, 0),
        (Phase.OPEN, 1, 0),
        (Phase.OPEN, 3, 2),
    ):
        room.change(phase=phase)
        room.move(hi, lo)
        for given in (b"", cookie):
            assert len(page(room, cookie=given).body) <= MAX_PAGE_BYTES


async def test_the_policy_allows_exactly_our_style_and_script() -> None:
    answer = page()
    policy = dict(answer.headers())["content-security-policy"]
    parsed = Markup(answer.body.decode())
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(parsed.inline[kind].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    for _, attrs in parsed.tags:
        assert not any(name.startswith("on") or name == "style" for name in attrs), "inline handlers would be blocked"
        assert "src" not in attrs, "everything is in the one answer"


def test_the_script_is_a_script(tmp_path: Path) -> None:
    script = Markup(page().body.decode()).inline["script"]
    (tmp_path / "page.mjs").write_text(script)
    node = shutil.which("node", path=str(Path(".venv/bin").resolve())) or shutil.which("node")
    assert node is not None
    subprocess.run([node, "--check", str(tmp_path / "page.mjs")], check=True, timeout=30)


def test_what_comes_from_outside_is_escaped() -> None:
    assert b"Aurora &lt;World&gt; Tour" in page().body
    room = SimpleRoom()
    room.change(config=room.state.config.changed(message="<script>alert(1)</script>"))
    assert b"<script>alert" not in page(room).body


async def test_without_scripts_a_waiting_page_shows_everything_and_refreshes_itself() -> None:
    """W9, B18."""
    room = SimpleRoom()
    for _ in range(2500):
        await room.joins.join("aurora")
    cookie = await waiting(room)
    room.move(1250)
    body = page(room, cookie=cookie).body.decode()
    parsed = Markup(body)
    assert '<noscript><meta http-equiv="refresh" content="7"></noscript>' in body
    assert re.search(r'id="ahead">1,250<', body)
    assert parsed.by_id("bar")["value"] == "499"
    assert parsed.by_id("say") == {"class": "vh", "role": "status", "aria-live": "polite", "id": "say"}
    assert "up to 1 min" in body or "about a minute" in body
    assert "hidden" not in parsed.by_id("wait")
    assert "hidden" in parsed.by_id("join")
    assert "hidden" in parsed.by_id("turn")
    room.move(2501)
    turn = page(room, cookie=cookie).body.decode()
    assert "hidden" not in Markup(turn).by_id("turn")
    assert "http-equiv" not in turn, "nobody is moved while reading that it is their turn"


@pytest.mark.parametrize("phase", [Phase.PAUSED, Phase.QUEUE_ALL])
async def test_a_held_room_says_so(phase: Phase) -> None:
    room = SimpleRoom()
    cookie = await waiting(room)
    room.change(phase=phase)
    assert "Nobody loses their place" in page(room, cookie=cookie).body.decode()


def test_every_field_has_a_label_and_the_page_a_language() -> None:
    parsed = Markup(page().body.decode())
    assert parsed.of("html")[0]["lang"] == "en-GB"
    assert parsed.of("meta")[1] == {"name": "viewport", "content": "width=device-width,initial-scale=1"}
    assert len(parsed.of("h1")) == 1
    assert len(parsed.of("label")) == len([i for i in parsed.of("input") if i.get("type") != "hidden"])
    assert parsed.of("progress")[0]["aria-label"]


def test_the_style_knows_dark_narrow_and_still() -> None:
    css = Markup(page().body.decode()).inline["style"]
    for wanted in ("color-scheme:light dark", "light-dark(", "max-width:30rem", "prefers-reduced-motion"):
        assert wanted in css


@pytest.mark.parametrize(
    ("check", "host"),
    [
        (Captcha(TURNSTILE, "site", "secret"), "https://challenges.cloudflare.com"),
        (Captcha(HCAPTCHA, "site", "secret"), "https://*.hcaptcha.com"),
        (Captcha(RECAPTCHA, "site", "secret"), "https://www.google.com/recaptcha/"),
        (ProofOfWork(b"k" * 32, "aurora", MemoryUsedProofs()), None),
    ],
)
@pytest.mark.usefixtures("built")
def test_a_captcha_provider_is_allowed_by_name_and_none_needs_scripts_silently(
    check: HumanCheck, host: str | None
) -> None:
    answer = page(check=check)
    policy = dict(answer.headers())["content-security-policy"]
    assert (host in policy) if host else ("https://" not in policy)
    assert ("needs JavaScript" in answer.body.decode()) is bool(host), "a form without a proof of work gets in as well"
    widgets = [attrs for attrs in Markup(answer.body.decode()).of("div") if attrs.get("data-sitekey") == "site"]
    assert len(widgets) == (1 if host else 0)
    assert len(answer.body) <= MAX_PAGE_BYTES


def test_a_browser_without_scripts_joins_waits_and_goes_in_by_forms(server: ServedRoom) -> None:
    """W7, W9."""
    with httpx.Client(base_url=server.client.base_url, trust_env=False, timeout=20) as browser:
        assert "Join the queue" in browser.get("/", headers=BROWSER).text
        sent = browser.post("/join", headers=FORM, data={"page": "true", "proof": "", "code": ""})
        assert (sent.status_code, sent.headers["location"]) == (303, "/v1/events/aurora/room/")
        cookie = next(c for c in sent.headers.get_list("set-cookie") if c.startswith("frontrow_place"))
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        assert "You’re in the queue" in browser.get("/", headers=BROWSER).text
        early = browser.post("/claim", headers=FORM, data={"page": "true"})
        assert early.status_code == 409
        assert "not your turn" in early.text
        server.room.move(1)
        assert "It’s your turn" in browser.get("/", headers=BROWSER).text
        taken = browser.post("/claim", headers=FORM, data={"page": "true"})
        assert (taken.status_code, taken.headers["location"]) == (303, "/shop")
        assert browser.get("/pass").status_code == 204


def test_another_sites_form_is_refused(server: ServedRoom) -> None:
    for site in ("cross-site", "same-site"):
        answer = server.client.post("/join", headers={"Sec-Fetch-Site": site}, data={"page": "true"})
        assert answer.status_code == 403
    assert server.room.state.lanes[0].issued == 0


def test_a_cookie_that_is_no_place_is_treated_as_none() -> None:
    for cookie in (
        b"frontrow_place_aurora=rubbish",
        b"frontrow_place_aurora",
        b"frontrow_place_aurora=" + b"A" * 20_000,
    ):
        assert b"Get your place" in page(cookie=cookie).body


@pytest.mark.parametrize(
    ("wait", "text"),
    [
        (Wait(0, 50), "about a minute"),
        (Wait(30, 200), "up to 4 min"),
        (Wait(600, 1000), "10–17 min"),
        (Wait(60_000, 90_000), "1,000–1,500 min"),
        (Wait(None, None, Reason.PAUSED), "Paused"),
        (Wait(None, None), "not known yet"),
    ],
)
def test_a_wait_is_told_as_an_honest_band(wait: Wait, text: str) -> None:
    assert wait_text(wait) == text
