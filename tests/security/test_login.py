"""Guessing, timing, lockout, fixation, and whose address counts. Work is counted, not timed."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from argon2 import PasswordHasher, extract_parameters
from argon2.exceptions import VerifyMismatchError

from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.people.passwords import unknown_password_hash
from frontrow.web.server.app import front_of
from tests.boxoffice.people.support import CHEAP, PASSWORD, Person, code_now, mailed, member, opened
from tests.security.world import AsgiClient, Reply
from tests.web.api.support import borrowed_app

LOGIN = "/v1/auth/staff/login"
MANY = ("100000/minute",)


@contextlib.asynccontextmanager
async def a_client(folder: Any, people: Any = CHEAP, **server: Any) -> AsyncIterator[tuple[AsgiClient, Person]]:
    async with opened(folder, people, **server) as platform:
        with borrowed_app(platform) as app:
            client = AsgiClient(front_of(app, platform))
            client.platform = platform  # type: ignore[attr-defined]
            yield client, await member(platform, Role.OWNER)


async def login(client: AsgiClient, email: str, password: str, **how: Any) -> Reply:
    headers = how.pop("headers", [])
    return await client.ask(
        "POST", LOGIN, headers, {"email": email, "password": password, **how.pop("more", {})}, **how
    )


async def test_login_timing_unknown_and_known_accounts_cost_one_verification_each(tmp_path):
    async with a_client(tmp_path, replace(CHEAP, account_tries=MANY)) as (client, owner):
        passwords = client.platform.people.passwords
        answers = set()
        for email in (owner.staff.email, "nobody@example.org", "no address", "", owner.staff.email.upper()):
            before = passwords.verifications
            reply = await login(client, email, "wrong wrong wrong")
            assert passwords.verifications - before == 1, email
            answers.add((reply.status, reply.body))
        assert len(answers) == 1, "word for word the same"


def test_login_timing_the_hash_of_no_account_costs_as_much_as_a_real_one():
    hasher = PasswordHasher(time_cost=2, memory_cost=64, parallelism=3)
    made = unknown_password_hash(hasher)
    assert extract_parameters(made) == extract_parameters(hasher.hash("a real one"))
    with pytest.raises(VerifyMismatchError):  # computed and found wrong, not refused unread
        hasher.verify(made, "a guess")


async def test_lockout_of_an_account_looks_the_same_whether_it_exists_and_costs_no_verification(tmp_path):
    async with a_client(tmp_path) as (client, owner):
        seen = {}
        for email in (owner.staff.email, "nobody@example.org"):
            before = client.platform.people.passwords.verifications
            tries = [await login(client, email, "wrong wrong wrong", peer=f"198.51.100.{n}") for n in range(9)]
            seen[email] = [(reply.status, reply.code) for reply in tries]
            assert client.platform.people.passwords.verifications - before == 5
            assert int(tries[-1].header("retry-after")) >= 1
        first, second = seen.values()
        assert first == second == [(401, "wrong_credentials")] * 5 + [(429, "too_many_tries")] * 4
        right = await login(client, owner.staff.email, PASSWORD)
        assert right.status == 429, "not even the right password helps while locked"


async def test_guessing_many_accounts_from_one_address(tmp_path):
    async with a_client(tmp_path) as (client, _):
        replies = [await login(client, f"a{n}@example.org", "wrong wrong wrong", peer="203.0.113.9") for n in range(35)]
        assert [reply.status for reply in replies] == [401] * 30 + [429] * 5
        other = await login(client, "a99@example.org", "wrong wrong wrong", peer="203.0.113.10")
        assert other.status == 401


async def test_x_forwarded_for_from_an_untrusted_peer_buys_no_tries(tmp_path):
    """Whoever is not our proxy says what it likes: the peer's own address counts."""
    async with a_client(tmp_path) as (client, _):
        replies = []
        for n in range(35):
            headers = [
                ("x-forwarded-for", f"198.51.100.{n}"),
                ("x-real-ip", f"198.51.100.{n}"),
                ("forwarded", f"for={n}"),
            ]
            replies.append(await login(client, f"b{n}@example.org", "wrong", peer="203.0.113.9", headers=headers))
        assert [reply.status for reply in replies[30:]] == [429] * 5


async def test_x_forwarded_for_through_our_own_proxy_counts_the_client_not_what_it_claims(tmp_path):
    async with a_client(tmp_path, trusted_proxies=("10.0.0.1",)) as (client, _):
        for claimed in ("", "203.0.113.77, "):  # the client's own header stands left of what the proxy adds
            replies = []
            for n in range(35):
                forwarded = [("x-forwarded-for", f"{claimed and f'198.51.100.{n}, '}203.0.113.{len(claimed)}")]
                replies.append(await login(client, f"c{n}@example.org", "wrong", peer="10.0.0.1", headers=forwarded))
            assert [reply.status for reply in replies[30:]] == [429] * 5
        headers = [("x-forwarded-for", "192.0.2.200")]
        assert (await login(client, "d@example.org", "wrong", peer="10.0.0.1", headers=headers)).status == 401


async def test_ipv6_rotation_within_a_network_is_one_address(tmp_path):
    """A household has 2^64 addresses; they are one guesser. IPv4 inside IPv6 is the IPv4 address."""
    async with a_client(tmp_path) as (client, _):
        rotated = [await login(client, f"e{n}@example.org", "wrong", peer=f"2001:db8:1:2::{n:x}") for n in range(35)]
        assert [reply.status for reply in rotated[30:]] == [429] * 5
        other = await login(client, "e99@example.org", "wrong", peer="2001:db8:1:3::1")
        assert other.status == 401
        mapped = [
            await login(client, f"f{n}@example.org", "wrong", peer="192.0.2.5" if n % 2 else "::ffff:192.0.2.5")
            for n in range(35)
        ]
        assert [reply.status for reply in mapped[30:]] == [429] * 5


async def test_session_fixation_a_planted_session_is_worth_nothing_after_signing_in(tmp_path):
    """Staff and fans, by cookie: the secret before signing in never becomes the secret after, and dies."""
    async with a_client(tmp_path) as (client, owner):
        guest = (await client.ask("POST", "/v1/auth/guest", (), {})).header("set-cookie")
        planted = guest.partition("=")[2].partition(";")[0]
        csrf = (await client.ask("GET", "/v1/auth/session", [("cookie", f"__Host-frontrow-session={planted}")])).json()
        browser = [("cookie", f"__Host-frontrow-session={planted}"), ("x-csrf-token", csrf["csrf"])]
        code = {"code": code_now(client.platform, owner)}
        reply = await login(client, owner.staff.email, PASSWORD, headers=browser, more=code)
        secret = reply.header("set-cookie").partition("=")[2].partition(";")[0]
        assert reply.json()["stage"] == "full"
        assert secret not in ("", planted)
        assert (await session_kind(client, planted)) == "nobody"
        assert (await session_kind(client, secret)) == "staff"
        made_up = "frs_" + "A" * 43
        await login(client, owner.staff.email, PASSWORD, headers=[("cookie", f"__Host-frontrow-session={made_up}")])
        assert (await session_kind(client, made_up)) == "nobody", "nobody chooses their own secret"


async def test_session_fixation_a_link_that_somebody_else_asked_for_signs_nobody_in(tmp_path):
    """An attacker asks for a link to the victim's address, or sends the victim a link of the attacker's own."""
    async with a_client(tmp_path) as (client, _):
        asked = await client.ask("POST", "/v1/auth/link", (), {"email": "victim@example.org"})
        link = await mailed(client.platform, "victim@example.org")
        victims = await client.ask("POST", "/v1/auth/link/redeem", (), {"link": link})
        assert (victims.status, victims.code) == (409, "other_browser")
        assert victims.header("set-cookie") == ""
        ask = asked.header("set-cookie").partition("=")[2].partition(";")[0]
        assert ask == asked.json()["ask"]
        own = [("cookie", f"__Host-frontrow-ask={ask}")]
        assert (await client.ask("POST", "/v1/auth/link/redeem", own, {"link": link})).status == 200


async def test_asking_for_links_tells_nobody_who_has_an_account_and_is_limited(tmp_path):
    async with a_client(tmp_path) as (client, owner):
        first = await client.ask("POST", "/v1/auth/link", (), {"email": "known@example.org"})
        body = {"link": await mailed(client.platform, "known@example.org"), "ask": first.json()["ask"]}
        assert (await client.ask("POST", "/v1/auth/link/redeem", (), body)).status == 200
        for email in ("known@example.org", "unknown@example.org", owner.staff.email):
            reply = await client.ask("POST", "/v1/auth/link", (), {"email": email})
            assert (reply.status, sorted(reply.json())) == (202, ["ask", "minutes"])
        replies = [await client.ask("POST", "/v1/auth/link", (), {"email": "known@example.org"}) for _ in range(3)]
        assert replies[-1].status == 429, "nobody's mailbox is flooded"


async def session_kind(client: AsgiClient, secret: str) -> str:
    reply = await client.ask("GET", "/v1/auth/session", [("cookie", f"__Host-frontrow-session={secret}")])
    return str(reply.json()["kind"])
