"""Signing in over HTTP: fans, guests, staff, invitations, sessions, keys and the team (B13)."""

import httpx
import pyotp

from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.people.support import PASSWORD, api_key, asking, code_now, mailed, mailed_code, member, opened

LINK, REDEEM = "/v1/auth/link", "/v1/auth/link/redeem"


async def signed_in_fan(client: httpx.AsyncClient, platform, address="fan@example.org") -> dict[str, str]:
    """Sign in as a browser does; the CSRF header for what follows."""
    assert (await client.post(LINK, json={"email": address})).status_code == 202
    answer = await client.post(REDEEM, json={"link": await mailed(platform, address)})
    assert answer.status_code == 200, answer.text
    return {"x-csrf-token": answer.json()["csrf"]}


async def test_a_fan_signs_in_by_magic_link_and_signs_out(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        csrf = await signed_in_fan(client, platform)
        set_by = [cookie for cookie in client.cookies.jar if cookie.name == SESSION_COOKIE]
        assert [(one.secure, one.path, one.domain_specified) for one in set_by] == [(True, "/", False)]
        told = (await client.get("/v1/auth/session")).json()
        assert (told["kind"], told["role"], told["stage"], told["session"]) == ("fan", "fan", "full", "")
        assert told["csrf"] == csrf["x-csrf-token"]
        me = (await client.get("/v1/me")).json()
        assert (me["email"], me["guest"], me["preferences"]["channels"]) == (
            "fan@example.org",
            False,
            ["email", "in_app"],
        )
        assert (await client.delete("/v1/auth/session", headers=csrf)).status_code == 204
        assert (await client.get("/v1/auth/session")).json()["kind"] == "nobody"
        assert (await client.get("/v1/me")).json()["code"] == "sign_in_needed"


async def test_a_session_cookie_is_for_this_host_over_tls_and_no_script(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        answer = await client.post("/v1/auth/guest", json={})
        (cookie,) = answer.headers.get_list("set-cookie")
        parts = {part.strip().lower().partition("=")[0] for part in cookie.split(";")}
        assert cookie.startswith(f"{SESSION_COOKIE}=frs_")
        assert {"secure", "httponly", "path", "samesite", "max-age"} <= parts
        assert "domain" not in parts
        assert answer.headers["cache-control"] == "no-store"
        assert answer.json()["session"] == "", "a browser's script never sees it"


async def test_a_link_works_in_another_browser_once_its_address_was_confirmed(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as mine, asking(platform) as other:
        await mine.post(LINK, json={"email": "fan@example.org"})
        link = await mailed(platform, "fan@example.org")
        refused = (await other.post(REDEEM, json={"link": link})).json()
        assert (refused["code"], refused["email"]) == ("other_browser", "fan@example.org")
        assert (await other.post(REDEEM, json={"link": link, "confirmed": True})).status_code == 200
        assert (await other.get("/v1/me")).json()["email"] == "fan@example.org"
        for client in (mine, other):
            again = await client.post(REDEEM, json={"link": link, "confirmed": True})
            assert again.status_code in (403, 404), "it works once, whoever asks"
        assert (await mine.get("/v1/auth/session")).json()["kind"] == "nobody"


async def test_a_fan_signs_in_by_the_code_of_the_mail_in_the_browser_that_asked(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as mine, asking(platform) as other:
        await mine.post(LINK, json={"email": "fan@example.org"})
        code = await mailed_code(platform, "fan@example.org")
        elsewhere = await other.post(REDEEM, json={"code": code})
        assert (elsewhere.status_code, elsewhere.json()["code"]) == (422, "wrong_sign_in_code")
        arabic = code.replace(" ", "-").translate({ord(str(n)): 0x660 + n for n in range(10)})
        assert (await mine.post(REDEEM, json={"code": arabic})).status_code == 200, "as a phone's keyboard types it"
        await mine.post(LINK, json={"email": "fan@example.org"})
        spent = await mine.post(REDEEM, json={"code": code}, headers={"x-csrf-token": "x"})
        assert spent.status_code in (403, 404, 422)


async def test_a_code_has_five_tries(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        await client.post(LINK, json={"email": "fan@example.org"})
        right = (await mailed_code(platform, "fan@example.org")).replace(" ", "")
        wrong = f"{(int(right) + 1) % 1_000_000:06}"
        answers = [await client.post(REDEEM, json={"code": wrong}) for _ in range(6)]
        assert [one.status_code for one in answers] == [422] * 5 + [429]
        late = await client.post(REDEEM, json={"code": right})
        assert late.json()["code"] == "too_many_tries", "not even the right one helps"
        assert (await client.post(REDEEM, json={"link": await mailed(platform, "fan@example.org")})).status_code == 200


async def test_a_code_is_spent_with_its_link(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        ask = (await client.post(LINK, json={"email": "fan@example.org"})).json()["ask"]
        code = await mailed_code(platform, "fan@example.org")
        assert (await client.post(REDEEM, json={"link": await mailed(platform, "fan@example.org")})).status_code == 200
        async with asking(platform) as again:
            assert (await again.post(REDEEM, json={"code": code, "ask": ask})).json()["code"] == "link_spent"


async def test_a_link_does_not_work_by_itself_in_another_browser(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as mine, asking(platform) as other:
        await mine.post(LINK, json={"email": "fan@example.org"})
        link = await mailed(platform, "fan@example.org")
        refused = await other.post(REDEEM, json={"link": link})
        assert (refused.status_code, refused.json()["code"]) == (409, "other_browser")
        assert (await mine.post(REDEEM, json={"link": link})).status_code == 200
        again = await mine.post(REDEEM, json={"link": link}, headers={"x-csrf-token": "x"})
        assert again.status_code in (403, 410)


async def test_a_program_signs_in_without_cookies(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        asked = (await client.post(LINK, json={"email": "fan@example.org"})).json()
        client.cookies.clear()
        link = await mailed(platform, "fan@example.org")
        body = {"link": link, "ask": asked["ask"], "deliver": "bearer"}
        told = await client.post(REDEEM, json=body)
        assert "frontrow-session" not in told.headers.get("set-cookie", "")
        client.cookies.clear()
        me = await client.get("/v1/me", headers={"authorization": f"Bearer {told.json()['session']}"})
        assert me.json()["email"] == "fan@example.org"


async def test_staff_sign_in_in_two_steps_and_every_step_has_a_new_secret(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        owner = await member(platform, Role.OWNER)
        first = await client.post("/v1/auth/staff/login", json={"email": owner.staff.email, "password": PASSWORD})
        assert (first.json()["stage"], first.json()["kind"], first.json()["permissions"]) == ("totp", "nobody", [])
        half, csrf = client.cookies[SESSION_COOKIE], {"x-csrf-token": first.json()["csrf"]}
        refused = await client.get("/v1/organiser/team")
        assert (refused.status_code, refused.json()["code"]) == (403, "second_factor_needed")
        wrong = await client.post("/v1/auth/staff/code", json={"code": "000000"}, headers=csrf)
        assert (wrong.status_code, wrong.json()["code"]) == (401, "wrong_credentials")
        full = await client.post("/v1/auth/staff/code", json={"code": code_now(platform, owner)}, headers=csrf)
        assert (full.json()["stage"], full.json()["role"]) == ("full", "owner")
        assert client.cookies[SESSION_COOKIE] != half
        assert (await client.get("/v1/organiser/team")).status_code == 200
        client.cookies.clear()
        replay = {"cookie": f"{SESSION_COOKIE}={half}"}
        assert (await client.get("/v1/auth/session", headers=replay)).json()["kind"] == "nobody"
        assert (await client.get("/v1/auth/sessions", headers=replay)).status_code == 401


async def test_a_member_is_invited_accepts_enrols_and_works(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        owner = await member(platform, Role.OWNER)
        invited = await client.post(
            "/v1/organiser/team/invitations", json={"email": "new@example.org", "role": "door"}, headers=owner.bearer
        )
        assert (invited.status_code, invited.json()["role"]) == (201, "door")
        link = await mailed(platform, "new@example.org")
        assert link not in invited.text
        body = {"invitation": link, "name": "Dora", "password": PASSWORD}
        assert (await client.post("/v1/auth/invitation", json=body)).status_code == 201
        assert (await client.post("/v1/auth/invitation", json=body)).json()["code"] == "link_spent"
        login = {"email": "new@example.org", "password": PASSWORD, "deliver": "bearer"}
        first = (await client.post("/v1/auth/staff/login", json=login)).json()
        assert first["stage"] == "enrol"
        half = {"authorization": f"Bearer {first['session']}"}
        begun = (await client.post("/v1/auth/staff/totp", json={}, headers=half)).json()
        assert begun["uri"].startswith("otpauth://totp/Frontrow:new%40example.org?")
        body = {"pending": begun["pending"], "code": pyotp.TOTP(begun["secret"]).now(), "deliver": "bearer"}
        done = (await client.post("/v1/auth/staff/totp/confirm", json=body, headers=half)).json()
        assert (done["stage"], done["permissions"], len(done["recovery_codes"])) == (
            "full",
            ["door:scan", "events:read"],
            10,
        )
        full = {"authorization": f"Bearer {done['session']}"}
        listed = (await client.get("/v1/auth/sessions", headers=full)).json()["sessions"]
        assert [one["current"] for one in listed] == [True]
        assert (await client.get("/v1/organiser/team", headers=full)).json()["code"] == "not_allowed"
        team = (await client.get("/v1/organiser/team", headers=owner.bearer)).json()
        assert [(one["role"], one["second_factor"]) for one in team["members"]] == [("owner", True), ("door", True)]


async def test_the_team_is_changed_and_people_are_signed_out_by_it(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        owner, gatekeeper = await member(platform, Role.OWNER), await member(platform, Role.DOOR)
        url = f"/v1/organiser/team/{gatekeeper.id}"
        changed = await client.patch(url, json={"role": "manager"}, headers=owner.bearer)
        assert changed.json()["role"] == "manager"
        assert (await client.get("/v1/organiser/team", headers=gatekeeper.bearer)).status_code == 401
        assert (await client.post(f"{url}/reset", json={}, headers=owner.bearer)).json()["reset"] is True
        assert (await client.delete(url, headers=owner.bearer)).status_code == 204
        assert (await client.delete(url, headers=owner.bearer)).status_code == 404
        last = await client.patch(f"/v1/organiser/team/{owner.id}", json={"role": "door"}, headers=owner.bearer)
        assert (last.status_code, last.json()["code"]) == (409, "last_owner")


async def test_an_api_key_is_told_once_works_within_its_scopes_and_is_revoked(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        owner = await member(platform, Role.OWNER)
        made = await client.post(
            "/v1/organiser/keys", json={"name": "till", "scopes": ["team:read", "team:write"]}, headers=owner.bearer
        )
        key = {"authorization": f"Bearer {made.json()['key']}"}
        assert (await client.get("/v1/organiser/team", headers=key)).status_code == 200
        assert (await client.get("/v1/organiser/keys", headers=key)).status_code == 403
        grabbed = {"email": "x@example.org", "role": "owner"}
        refused = await client.post("/v1/organiser/team/invitations", json=grabbed, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed"), "a key does not change the team"
        (listed,) = (await client.get("/v1/organiser/keys", headers=owner.bearer)).json()["keys"]
        assert listed["used_at"] is not None
        assert "key" not in listed
        assert (await client.delete(f"/v1/organiser/keys/{listed['id']}", headers=owner.bearer)).status_code == 204
        assert (await client.get("/v1/organiser/team", headers=key)).status_code == 401


async def test_a_password_is_changed_and_other_sessions_end(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        owner = await member(platform, Role.OWNER)
        body = {"old": PASSWORD, "new": "an entirely other sentence", "deliver": "bearer"}
        changed = (await client.post("/v1/auth/staff/password", json=body, headers=owner.bearer)).json()
        assert (await client.get("/v1/organiser/team", headers=owner.bearer)).status_code == 401
        new = {"authorization": f"Bearer {changed['session']}"}
        assert (await client.get("/v1/organiser/team", headers=new)).status_code == 200


async def test_two_proofs_of_one_kind_are_refused(tmp_path):
    async with opened(tmp_path) as platform, asking(platform) as client:
        owner = await member(platform, Role.OWNER)
        key = await api_key(platform, owner, ["team:read"])
        both = [("authorization", f"Bearer {owner.session}"), ("authorization", f"Bearer {key}")]
        assert (await client.get("/v1/organiser/team", headers=both)).status_code == 401
