"""Canary secrets: sent everywhere a secret can be, then looked for in logs, errors, metrics, addresses and reprs."""

import io
import logging
import re

import pytest

from frontrow.boxoffice.people.model.roles import Role
from tests.boxoffice.people.support import PASSWORD, api_key, fan, mailed, mails, member, opened
from tests.security.route_table import table
from tests.security.world import EVENT_ID, AsgiClient, a_client, a_world, bearer

CANARY = "CANARYcanary0123456789CANARYcanary012345678"  # as long as a secret of ours
CANARIES = {
    "session": f"frs_{CANARY}",
    "key": f"frk_{CANARY}",
    "link": f"frl_{CANARY}",
    "invitation": f"fri_{CANARY}",
    "booking": f"frb_{CANARY[:26]}.{CANARY[:22]}",
    "pass": f"eyJhbGciOiJSUzI1NiJ9.{CANARY}.{CANARY}",
}


async def test_canary_secrets_never_in_logs_errors_metrics_or_urls(tmp_path):
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(logging.DEBUG)
    try:
        quick = {"per_person": "100000/second", "per_ip": "100000/second"}
        async with opened(tmp_path, **quick) as platform, a_client(platform) as client:
            world = await a_world(platform, client)
            answers = [*await show_everywhere(world.client), *await fail_everywhere(world, platform)]
            metrics = await world.client.ask("GET", "/metrics")
            told = "\n".join(
                f"{reply.status} {reply.headers} {reply.body.decode('utf-8', 'replace')}" for reply in answers
            )
            shown = repr(platform) + repr(platform.settings) + repr(platform.people.vault) + repr(platform.secrets)
            shown += repr(await platform.people.sessions.find(world.people["owner of hall"].session))
            real = [person.session for person in world.people.values()] + [*world.keys.values(), PASSWORD]
            real += [person.totp for person in world.people.values() if person.totp]
    finally:
        logging.getLogger().removeHandler(handler)
        logging.getLogger().setLevel(logging.WARNING)
    log = written.getvalue()
    assert "a handler failed" in log, "something was logged, so there was something to look at"
    for secret in [CANARY, *real]:
        for name, text in (("logs", log), ("answers", told), ("reprs", shown), ("metrics", metrics.body.decode())):
            assert secret not in text, f"{secret[:8]}… in {name}"


async def show_everywhere(client: AsgiClient) -> list:
    """Every route, with every canary in every place a secret travels in."""
    replies = []
    for route in table():
        if "stream" in route.name:
            continue
        for secret in CANARIES.values():
            cookie = f"__Host-frontrow-session={secret}; __Host-frontrow-pass={secret}"
            headers = [*bearer(secret), ("frontrow-pass", secret), ("frontrow-booking", secret), ("cookie", cookie)]
            replies.append(await client.ask(route.method, route.path(event_id=EVENT_ID), headers, route.sample()))
    return replies


async def fail_everywhere(world, platform) -> list:
    """Bodies with secrets that are wrong, too long, of the wrong type; and a handler that breaks."""
    ask = world.client.ask
    spent = {"invitation": CANARIES["invitation"], "name": "x", "password": CANARY}
    replies = [
        await ask("POST", "/v1/auth/link/redeem", (), {"link": CANARIES["link"], "ask": CANARY}),
        await ask("POST", "/v1/auth/link/redeem", (), {"link": [CANARY]}),
        await ask("POST", "/v1/auth/invitation", (), spent),
        await ask("POST", "/v1/auth/staff/login", (), {"email": "x@example.org", "password": CANARY, "code": "CANARY"}),
        await ask("POST", "/v1/auth/staff/login", (), {"email": "x@example.org", "password": {"x": CANARY}}),
        await ask("POST", "/v1/auth/staff/login", (), f'{{"password": "{CANARY}'.encode()),
        await ask(
            "POST",
            "/v1/auth/staff/password",
            bearer(world.people["owner of hall"].session),
            {"old": CANARY, "new": "password1234567"},
        ),
    ]
    find = platform.people.sessions.find

    async def breaks(secret: str) -> None:
        raise RuntimeError("the ledger is on fire")

    platform.people.sessions.find = breaks
    replies.append(await ask("GET", "/v1/me", bearer(CANARIES["session"])))
    platform.people.sessions.find = find
    assert replies[-1].status == 500
    assert b"fire" not in replies[-1].body, "what broke is our own affair"
    return replies


async def test_secrets_stand_in_mails_behind_the_hash_only(tmp_path):
    """What servers, proxies and referrers see of a link is its path."""
    async with opened(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER)
        await fan(platform, "f@example.org")
        body = {"email": "n@example.org", "role": "door"}
        assert (await client.ask("POST", "/v1/organiser/team/invitations", bearer(owner.session), body)).status == 201
        for address in ("f@example.org", "n@example.org"):
            secret = await mailed(platform, address)
            for mail in await mails(platform, address):
                for url in re.findall(r"https?://[^\s\"<>]+", mail.as_string()):
                    before, _, behind = url.partition("#")
                    assert secret not in before
                    assert behind.replace("=", "").startswith(("frl_", "fri_", "3D")) or not behind
                assert secret not in str(mail["Subject"]) + str(mail["Message-ID"])


async def test_no_route_takes_a_secret_in_its_path_or_query():
    """Paths and queries end in logs and histories; secrets come in headers and bodies."""
    words = re.compile(r"token|secret|password|session(?!_id)|key(?!_id)|code|link|pass", re.IGNORECASE)
    for route in table():
        assert not [name for name in route.parameters() if words.search(name)], route.template
        for name, field in route.handler.parsed_fn_signature.parameters.items():
            if "QueryParameter" in str(field.raw):
                assert not words.search(name), (route.name, name)


async def test_answers_with_secrets_are_not_stored_anywhere(tmp_path):
    async with opened(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER)
        replies = [
            await client.ask("POST", "/v1/auth/guest", (), {"deliver": "bearer"}),
            await client.ask("POST", "/v1/auth/link", (), {"email": "f@example.org"}),
            await client.ask(
                "POST", "/v1/organiser/keys", bearer(owner.session), {"name": "k", "scopes": ["door:scan"]}
            ),
            await client.ask("GET", "/v1/auth/session", bearer(owner.session)),
            await client.ask("GET", "/v1/auth/sessions", bearer(owner.session)),
        ]
        for reply in replies:
            assert reply.header("cache-control") == "no-store", reply.body
        assert await api_key(platform, owner, ["door:scan"]) != replies[2].json()["key"]


@pytest.mark.parametrize("name", ["SecretSettings", "StripeSettings", "MessageSettings"])
def test_settings_with_secrets_do_not_show_them(name):
    from frontrow.settings import platform as settings

    kind = getattr(settings, name)
    fields = {
        field: CANARY for field in kind.__dataclass_fields__ if kind.__dataclass_fields__[field].metadata["secret"]
    }
    assert fields
    assert CANARY not in repr(kind(**fields))
