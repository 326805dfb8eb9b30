"""The console of a served room over HTTP: forged requests, roles, keys, rules at the shop's door, pages of rooms."""

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from email import message_from_bytes, policy
from pathlib import Path

import httpx
import pytest

from tests.support.servers import Valkey
from tests.web.room.console_session import (
    EMAIL,
    PASSWORD,
    ConsoleClient,
    client_to,
    close_clients,
    owner_of,
    printed_secret,
)
from tests.web.room.room_process import Served, room, wait_for


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    one = Served(tmp_path_factory.mktemp("console") / "room", capacity=100, trusted_proxies="127.0.0.1")
    yield one
    one.close()


@pytest.fixture(scope="module")
def owner(served: Served) -> ConsoleClient:
    return owner_of(served)


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    close_clients()


def base_of(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}"


def test_nobody_sees_the_console_without_signing_in(served: Served, owner: ConsoleClient) -> None:
    stranger = client_to(base_of(served))
    for path in ("", "rooms/aurora", "rooms/aurora/now", "rooms/aurora/figures.csv", "people", "keys", "log"):
        answer = stranger.get(f"/console/{path}")
        assert (answer.status_code, answer.headers["location"].split("?")[0]) == (303, "/console/sign-in"), path
    for path in ("rooms", "rooms/aurora/act", "rooms/aurora/page", "people", "keys"):
        assert stranger.post(f"/console/{path}", data={"action": "pause"}).status_code == 303
    assert served.client.get("/healthz").json()["rooms"]["aurora"] == "open"


def test_a_form_of_another_site_or_without_the_token_changes_nothing(served: Served, owner: ConsoleClient) -> None:
    path, form = "/console/rooms/aurora/act", {"action": "pause", "csrf": owner.csrf}
    for headers in (
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://evil.example"},
    ):
        assert owner.http.post(path, data=form, headers=headers).status_code == 403
    assert owner.http.post(path, data={"action": "pause"}).status_code == 403
    assert owner.http.post(path, data={"action": "pause", "csrf": "x" * 43}).status_code == 403
    assert owner.http.post(path, json=form).status_code == 422
    other = ConsoleClient(base_of(served))
    other.sign_in()
    other.take_token()
    assert other.csrf != owner.csrf
    assert owner.http.post(path, data={"action": "pause", "csrf": other.csrf}).status_code == 403
    assert served.client.get("/healthz").json()["rooms"]["aurora"] == "open"


def test_the_pages_allow_no_foreign_code(owner: ConsoleClient) -> None:
    page = owner.get("rooms/aurora")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert page.headers["cache-control"] == "private, no-store"
    assert "style=" not in page.text
    cookie = owner.http.post("/console/sign-in", data={"email": EMAIL, "password": PASSWORD, "csrf": owner.csrf})
    assert "HttpOnly" in cookie.headers["set-cookie"]
    assert "SameSite=Lax" in cookie.headers["set-cookie"]
    owner.take_token()


def test_a_sign_in_leads_only_to_our_own_pages(served: Served, owner: ConsoleClient) -> None:
    for back in ("https://evil.example/", "//evil.example", "/console//evil.example", "/join", "/console/\\evil"):
        given = {"email": EMAIL, "password": PASSWORD, "back": back}
        answer = httpx.post(f"{base_of(served)}/console/sign-in", data=given, trust_env=False)
        assert answer.headers["location"] == "/console/"


def test_passwords_are_not_accepted_over_plain_http_from_elsewhere(served: Served, owner: ConsoleClient) -> None:
    far = {"x-forwarded-for": "203.0.113.9"}
    given = {"email": EMAIL, "password": PASSWORD}
    answer = httpx.post(f"{base_of(served)}/console/sign-in", data=given, headers=far, trust_env=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/sign-in")
    assert "set-cookie" not in answer.headers
    page = httpx.get(f"{base_of(served)}/console/sign-in", headers=far, trust_env=False)
    assert "only over https" in page.text
    assert 'type="password"' not in page.text


def test_wrong_passwords_are_limited(tmp_path: Path) -> None:
    one = Served(tmp_path / "room")
    try:
        owner_of(one)
        stranger = ConsoleClient(base_of(one))
        answers = [stranger.sign_in(password="wrong password") for _ in range(7)]
        assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 2
        assert "wrong password" not in "".join(answer.text for answer in answers)
        assert stranger.sign_in().status_code == 429, "also with the right one"
    finally:
        one.close()


def test_roles_bound_what_somebody_may_do(served: Served, owner: ConsoleClient) -> None:
    link = owner.secret_shown(owner.post("people", email="eve@example.org", role="viewer"))
    eve = ConsoleClient(base_of(served)).begin(link, "eve@example.org")
    assert eve.get("rooms/aurora").status_code == 200
    for path, fields in (
        ("rooms/aurora/act", {"action": "pause"}),
        ("rooms", {"name": "mine", "capacity": "1"}),
        ("people", {"email": "x@example.org", "role": "owner"}),
        ("keys", {"name": "x", "scope": "room:write"}),
        ("rooms/aurora/delete", {"confirm": "aurora"}),
    ):
        assert eve.post(path, **fields).status_code == 403, path
    for path in ("people", "keys", "log", "rooms/aurora/rules", "rooms/aurora/page"):
        assert eve.get(path).status_code == 403
    person = re.search(r'action="/console/people/([^"]+)/remove"', owner.get("people").text)
    assert person is not None
    assert owner.post(f"people/{person[1]}/remove").status_code == 303
    assert eve.get("rooms/aurora").status_code == 303


def test_a_key_reads_and_changes_what_it_is_for_and_the_log_names_it(served: Served, owner: ConsoleClient) -> None:
    def key(*scopes: str) -> dict[str, str]:
        answer = owner.http.post("/console/keys", data={"csrf": owner.csrf, "name": "ops", "scope": list(scopes)})
        return {"authorization": f"Bearer {owner.secret_shown(answer)}"}

    reads, writes, rules = key("room:read", "figures:read"), key("room:write"), key("rules:read")
    path = "/v1/events/aurora/room"
    assert served.client.get(f"{path}/room", headers=reads).json()["min_slide"] == 1
    assert served.client.get(f"{path}/figures.csv", headers=reads).text.startswith("time,waiting")
    assert served.client.patch(f"{path}/room", headers=reads, json={"min_slide": 2}).status_code == 403
    assert served.client.get(f"{path}/rules", headers=reads).status_code == 403
    changed = served.client.patch(f"{path}/room", headers=writes, json={"min_slide": 2, "catch_up_us": 2_000_000})
    assert (changed.json()["min_slide"], changed.json()["catch_up_us"]) == (2, 2_000_000)
    document = served.client.get(f"{path}/rules", headers=rules).json()
    assert (document["kind"], document["v"]) == ("frontrow-room-rules", 1)
    log = owner.get("log?room=aurora").text
    assert "key ops" in log
    assert "min_slide" in log
    for found in re.findall(r'action="/console/keys/([^"]+)/revoke"', owner.get("keys").text):
        owner.post(f"keys/{found}/revoke")
    for headers in (reads, writes, rules):
        assert served.client.get(f"{path}/room", headers=headers).status_code == 401


def test_settings_are_reached_by_name_from_the_command_line_too(served: Served, owner: ConsoleClient) -> None:
    changes = ("min_slide=3", "active_windows=2", "interval_s=0.2", "catch_up_s=1.5")
    done = room("set", *changes, "--url", base_of(served), "--json")
    assert done.exit_code == 0, done.output
    shown = served.client.get("/room", headers={"authorization": "Bearer organiser-key-of-the-tests"}).json()
    assert [shown[name] for name in ("min_slide", "active_windows", "interval_us", "catch_up_us")] == [
        3,
        2,
        200_000,
        1_500_000,
    ]
    wrong = room("set", "min_slide=x", "--url", base_of(served))
    assert (wrong.exit_code, "is not like min_slide=5" in wrong.output) == (1, True)
    assert room("set", "slide=1", "--url", base_of(served)).exit_code == 1


def test_the_rules_hold_at_the_door_of_the_shop(served: Served, owner: ConsoleClient) -> None:
    saved = owner.post(
        "rooms/aurora/rules", paths="/buy*", open_paths="/buy/help", networks="203.0.113.0/24", crawlers=""
    )
    assert saved.status_code == 303
    secret = owner.secret_shown(owner.post("rooms/aurora/rules", make_key="yes"))

    def door(uri: str, **headers: str) -> int:
        asked = {"x-original-uri": uri, "x-original-method": "GET", "x-forwarded-for": "198.51.100.7"}
        given = asked | {name.replace("_", "-"): value for name, value in headers.items()}
        return served.client.get("/v1/events/aurora/room/pass", headers=given).status_code

    assert door("/buy/1") == 401
    assert door("/news") == 204
    assert door("/buy/help") == 204
    assert door("/buy/help/../1") == 401
    assert door("/buy/1", x_forwarded_for="203.0.113.8") == 204
    assert door("/buy/1", x_forwarded_for="203.0.113.8, 198.51.100.7") == 401, "only our own proxy is believed"
    assert door("/buy/1", frontrow_bypass=secret) == 204
    assert door("/buy/1", frontrow_bypass="frb_guess") == 401
    assert served.client.get("/v1/events/aurora/room/pass").status_code == 401, "who says nothing needs a pass"
    hashes = re.search(r'name="drop_key" value="([^"]+)"', owner.get("rooms/aurora/rules").text)
    assert hashes is not None
    owner.post("rooms/aurora/rules", drop_key=hashes[1])
    assert door("/buy/1", frontrow_bypass=secret) == 401
    wrong = owner.post("rooms/aurora/rules", paths="buy", networks="203.0.113.0/24")
    assert wrong.status_code == 422
    assert ">buy</textarea>" in wrong.text, "what was typed is not lost"
    owner.post("rooms/aurora/rules")
    assert door("/news") == 401, "without rules everything is protected"


def test_an_owners_texts_never_become_code(served: Served, owner: ConsoleClient) -> None:
    evil = '</script><script>alert(1)</script>{{7*7}}" onload="x'
    files = {"logo": ("logo.svg", b"<svg onload='alert(1)'/>", "image/svg+xml")}
    form = {"csrf": owner.csrf, "language": ["en"], "title_en": evil, "text_en": evil, "colour": "#a3123f"}
    refused = owner.http.post("/console/rooms/aurora/page", data=form, files=files)
    assert refused.status_code == 422
    logo = (Path(__file__).parents[3] / "src/frontrow/web/static/img/icon-192.png").read_bytes()
    saved = owner.http.post("/console/rooms/aurora/page", data=form, files={"logo": ("logo.png", logo, "image/png")})
    assert saved.status_code == 303, saved.text[-500:]
    page = served.client.get("/v1/events/aurora/room/", headers={"accept": "text/html"})
    assert "<script>alert" not in page.text
    assert "{{7*7}}" in page.text
    assert 'onload="x' not in page.text
    found = re.search(r'src="(/pictures/[0-9a-f]+)"', page.text)
    assert found is not None
    picture = served.client.get(found[1])
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
    assert picture.content != logo, "it was drawn anew"
    for colour in ("red;}body{display:none", "#a3123", "url(//evil)"):
        assert owner.http.post("/console/rooms/aurora/page", data=form | {"colour": colour}).status_code == 422


def test_a_room_is_there_until_it_is_deleted(served: Served, owner: ConsoleClient) -> None:
    assert owner.post("rooms", name="gone", capacity="5").headers["location"].startswith("/console/rooms/gone/connect")
    base = "/v1/events/gone/room"
    assert served.client.post(f"{base}/join").status_code == 201
    assert owner.post("rooms", name="gone", capacity="5").status_code == 409
    assert owner.post("rooms/gone/delete", confirm="go").status_code == 422
    assert owner.post("rooms/gone/delete", confirm="gone").status_code == 303
    assert served.client.post(f"{base}/join").status_code == 404
    assert owner.get("rooms/gone").status_code == 404
    assert owner.post("rooms", name="gone", capacity="5").status_code == 409, "a name is used once"


def test_a_restart_keeps_rooms_sessions_and_a_kill_loses_no_place(tmp_path: Path) -> None:
    one = Served(tmp_path / "room")
    try:
        owner = owner_of(one)
        owner.post("rooms", name="spring", capacity="0")
        place = one.client.post("/v1/events/spring/room/join").json()["place"]
        one.process.kill()
        one.process.wait(20)
        one.start()
        assert "console on" in (tmp_path / "serve.log").read_text(), "there is an owner: no new link"
        assert owner.get("rooms/spring").status_code == 200
        seen = one.client.get("/v1/events/spring/room/status", headers={"authorization": f"Bearer {place}"})
        assert seen.json()["position"] == 1
    finally:
        one.close()


def test_two_workers_on_redis_serve_every_change_within_a_second(own_valkey: Valkey, tmp_path: Path) -> None:
    one = Served(tmp_path / "room", "--workers", "2", "--store", own_valkey.url)
    try:
        owner = owner_of(one)
        owner.post("rooms", name="spring", capacity="5")

        def everywhere(code: int) -> bool:
            """Each worker answers about half of new connections."""
            url = f"{base_of(one)}/v1/events/spring/room/now-serving"
            return {httpx.get(url, trust_env=False).status_code for _ in range(12)} == {code}

        wait_for(lambda: everywhere(200), one.log)
        owner.post("rooms/spring/delete", confirm="spring")
        wait_for(lambda: everywhere(404), one.log)
    finally:
        one.close()


def test_the_command_makes_links_for_whoever_has_the_machine(tmp_path: Path) -> None:
    one = Served(tmp_path / "room")
    try:
        first = printed_secret(one)
        made = room("owner", "--folder", str(one.folder))
        assert made.exit_code == 0, made.output
        secret = made.output.strip().rpartition("#")[2]
        owner = ConsoleClient(base_of(one))
        old = owner.http.post(
            "/console/begin", data={"link": first, "email": EMAIL, "name": "Ada", "password": PASSWORD}
        )
        assert old.status_code == 404, "a new link replaces the printed one"
        owner.begin(secret)
        assert room("owner", "--folder", str(one.folder)).exit_code == 1
        again = room("owner", "--folder", str(one.folder), "--email", EMAIL).output.strip().rpartition("#")[2]
        ConsoleClient(base_of(one)).begin(again, password="another long sentence")
        assert owner.get("rooms/aurora").status_code == 303, "a new password ends every session"
    finally:
        one.close()


def test_a_room_without_a_console_has_none(tmp_path: Path) -> None:
    one = Served(tmp_path / "room", console="false")
    try:
        assert one.client.get("/console/").status_code == 404
        assert "console" not in (tmp_path / "serve.log").read_text()
        assert one.client.post("/join").status_code == 201
    finally:
        one.close()


def test_who_waits_is_told_by_mail_shortly_before_the_turn(tmp_path: Path) -> None:
    one = Served(tmp_path / "room", mail=str(tmp_path / "mails"))
    key = {"authorization": "Bearer organiser-key-of-the-tests"}
    try:
        one.client.patch("/room", headers=key, json={"action": "pause"})
        browser = client_to(base_of(one), accept="text/html", accept_language="de")
        base = "/v1/events/aurora/room"
        assert browser.post(f"{base}/join", data={"page": "true"}).status_code == 303
        assert "Vorher Bescheid bekommen" in browser.get(f"{base}/").text
        asked = {"kind": "email", "to": "ada@example.org"}
        assert browser.post(f"{base}/notice", data=asked, headers={"sec-fetch-site": "cross-site"}).status_code == 403
        assert browser.post(f"{base}/notice", data=asked | {"to": "nobody"}).status_code == 422
        assert httpx.post(f"{base_of(one)}{base}/notice", data=asked, trust_env=False).status_code == 401
        done = browser.post(f"{base}/notice", data=asked)
        assert (done.status_code, "Wir sagen Ihnen Bescheid" in done.text) == (200, True)
        assert not list(tmp_path.glob("mails/*.eml"))
        one.client.patch("/room", headers=key, json={"action": "resume"})
        wait_for(lambda: list(tmp_path.glob("mails/*.eml")), one.log)
        (mail,) = tmp_path.glob("mails/*.eml")
        told = message_from_bytes(mail.read_bytes(), policy=policy.default)
        assert (told["to"], told["subject"]) == ("ada@example.org", "Sie sind bald dran")
        assert f"{base}/" in told.get_body().get_content()
        kept = sqlite3.connect(tmp_path / "room" / "console.sqlite")
        with contextlib.closing(kept):
            wait_for(lambda: kept.execute("SELECT address, state FROM console_notices").fetchall() == [("", "sent")])
    finally:
        one.close()
