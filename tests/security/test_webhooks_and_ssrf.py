"""Notices that pretend to come from the payment provider, and addresses that lead into our own network."""

import json
from dataclasses import replace

import pytest

from frontrow.app.wiring import open_platform
from frontrow.boxoffice.messages.safe_http import SafeHttpClient, UnsafeAddress
from frontrow.client import check_signature
from frontrow.core.errors import Unavailable
from frontrow.settings.platform import StripeSettings
from frontrow.shared.webhook_signature import sign
from tests.security.world import EVENT_ID, World, a_client
from tests.web.api.support import settings_for

SECRET = "whsec_test_of_the_platform"
PATH = "/v1/webhooks/stripe"


def notice(number: int) -> bytes:
    about = {"id": "pi_of_nobody", "object": "payment_intent", "status": "requires_capture"}
    kind = "payment_intent.amount_capturable_updated"
    return json.dumps({"id": f"evt_{number}", "object": "event", "type": kind, "data": {"object": about}}).encode()


async def test_webhook_forgery_and_replay(tmp_path):
    """Unsigned, wrongly signed, changed, old and future notices are refused; the same one again does nothing."""
    stripe = StripeSettings("sk_test_never_called", SECRET, "pk_test_never_called", "http://127.0.0.1:9")
    async with open_platform(replace(settings_for(tmp_path), stripe=stripe)) as platform, a_client(platform) as client:
        now_us, body = platform.clock(), notice(1)
        good = sign(body, SECRET, now_us)
        forged = [
            "",
            "t=1",
            "v1=abc",
            good.replace("v1=", "v0="),
            sign(body, "another secret", now_us),
            sign(notice(2), SECRET, now_us),
            sign(body, SECRET, now_us - 301 * 10**6),
            sign(body, SECRET, now_us + 302 * 10**6),
            good.replace("t=", "t=1"),
            f"t={now_us // 10**6},{good}",
            good + "0",
        ]
        for header in forged:
            reply = await client.ask("POST", PATH, [("stripe-signature", header)] if header else [], body)
            assert reply.status == 401, (header, reply.status, reply.body)
        assert (await client.ask("POST", PATH, [("stripe-signature", good)], body + b" ")).status == 401
        about = b'{"id":"evt_1","type":"refund.updated","data":%b}'
        deep = b'{"id":' + b"[" * 4_500 + b"]" * 4_500 + b"}"
        strange = [b"", b"{", b"[]", b"null", b"\xff", b'{"id":1}', b'{"id":"e","data":{}}', about % b"[]", deep]
        for rubbish in strange:  # signed, and still nothing that we could act on
            reply = await client.ask("POST", PATH, [("stripe-signature", sign(rubbish, SECRET, now_us))], rubbish)
            assert (reply.status, reply.code) == (422, "invalid_input"), (rubbish[:40], reply.status, reply.body)
        first = await client.ask("POST", PATH, [("stripe-signature", good)], body)
        again = await client.ask("POST", PATH, [("stripe-signature", good)], body)
        assert (first.status, first.json(), again.status, again.json()) == (200, {"done": True}, 200, {"done": False})


async def test_a_notice_without_stripe_is_not_taken(tmp_path):
    async with open_platform(settings_for(tmp_path)) as platform, a_client(platform) as client:
        reply = await client.ask("POST", PATH, [("stripe-signature", sign(notice(1), "", platform.clock()))], notice(1))
        assert reply.status == 404


def test_our_own_webhooks_are_signed_and_an_old_one_is_refused():
    body, now_us = b'{"id":"fct_1"}', 1_700_000_000_000_000
    header = sign(body, "secret", now_us)
    assert check_signature(header, "secret", body, now_s=now_us / 1e6)
    for bad, at_us, what in (
        (header, now_us + 301 * 10**6, body),
        (header, now_us, body + b"x"),
        (header.replace("v1=", "v1=0"), now_us, body),
        ("", now_us, body),
        (sign(body, "other", now_us), now_us, body),
    ):
        assert not check_signature(bad, "secret", what, now_s=at_us / 1e6)


INSIDE = [
    "http://example.org/",
    "https://127.0.0.1/",
    "https://localhost./",
    "https://[::1]/",
    "https://0.0.0.0/",
    "https://10.1.2.3/",
    "https://192.168.1.1/",
    "https://172.16.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://100.64.0.1/",
    "https://[fd00::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://0177.0.0.1/",
    "https://user@127.0.0.1/",
    "https://example.org@127.0.0.1/",
    "https://example.org\\@127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "https:///x",
    "https://",
    "https://exa mple.org/",
    "https://example.org:99999/",
    "//127.0.0.1/",
    "https://255.255.255.255/",
    "https://224.0.0.1/",
]


NAMES = ["https://localhost./", "https://push.example.org/x"]  # what it leads to is known only when it is called


@pytest.mark.parametrize("url", INSIDE)
async def test_ssrf_by_address(url: str):
    """Loopback, private, link-local, metadata, mapped and disguised addresses: refused before anything is sent."""

    async def loopback(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    outgoing = SafeHttpClient(resolver=loopback)
    with pytest.raises(UnsafeAddress):
        await outgoing.post(url, b"{}", {})
    await outgoing.aclose()


async def test_ssrf_by_name_and_by_rebinding():
    """A name with any inside address among its own is refused; it is resolved once, and that address is used."""
    asked = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return {"mixed.example": ["93.184.216.34", "10.0.0.7"], "none.example": []}.get(host, ["169.254.169.254"])

    outgoing = SafeHttpClient(resolver=resolver)
    for host in ("mixed.example", "metadata.example"):
        with pytest.raises(UnsafeAddress):
            await outgoing.post(f"https://{host}/hook", b"{}", {})
    with pytest.raises(Unavailable):
        await outgoing.post("https://none.example/hook", b"{}", {})
    assert asked == ["mixed.example", "metadata.example", "none.example"]
    await outgoing.aclose()


@pytest.mark.asyncio(loop_scope="session")
async def test_ssrf_by_push_subscription(world: World):
    """Where a browser's push messages go is an address from outside too."""
    for url in INSIDE:
        body = {"endpoint": url, "keys": {"p256dh": "x", "auth": "x"}}
        reply = await world.client.ask("POST", "/v1/me/push", world.callers()["stranger"], body)
        assert reply.status == 422, (url, reply.status)


@pytest.mark.asyncio(loop_scope="session")
async def test_ssrf_by_webhook_url(world: World, monkeypatch: pytest.MonkeyPatch):
    """An organiser's webhook is refused when it is made, if its address says enough; a name when it is called."""
    monkeypatch.setattr(world.platform.messaging.webhooks, "_outgoing", SafeHttpClient())  # as outside the demo
    owner = world.callers()["owner of hall"]
    for url in INSIDE:
        reply = await world.client.ask("POST", "/v1/organiser/webhooks", owner, {"event": EVENT_ID, "url": url})
        assert reply.status == 422 or url in NAMES, (url, reply.status, reply.body)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_demo_sends_webhooks_to_this_machine_and_to_nothing_else_inside(world: World):
    owner = world.callers()["owner of hall"]
    here = {"https://127.0.0.1/", "https://localhost./", "https://[::1]/"}
    for url in [*INSIDE, "http://127.0.0.1:9000/hook", "http://localhost:9000/hook"]:
        reply = await world.client.ask("POST", "/v1/organiser/webhooks", owner, {"event": EVENT_ID, "url": url})
        fine = url in here or url.startswith(("http://127.0.0.1:", "http://localhost:"))
        assert reply.status == (201 if fine else 422), (url, reply.status, reply.body)
        if fine:
            removed = f"/v1/organiser/webhooks/{reply.json()['webhook']}"
            assert (await world.client.ask("DELETE", removed, owner)).status == 204


async def test_only_the_demo_sends_webhooks_to_this_machine(tmp_path):
    stripe = StripeSettings("sk_test_never_called", SECRET, "pk_test_never_called", "http://127.0.0.1:9")
    for demo in (True, False):
        settings = replace(settings_for(tmp_path / str(demo)), stripe=stripe)
        settings = replace(settings, server=replace(settings.server, demo=demo))
        async with open_platform(settings) as platform:
            try:
                platform.messaging.webhooks.check_url("http://localhost:9000/hook")
            except UnsafeAddress:
                assert not demo
            else:
                assert demo


@pytest.mark.parametrize("url", NAMES)
async def test_ssrf_by_a_name_that_leads_inside_is_refused_when_something_is_sent(url: str):
    async def inside(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    outgoing = SafeHttpClient(resolver=inside)
    with pytest.raises(UnsafeAddress):
        await outgoing.post(url, b"{}", {})
    await outgoing.aclose()
