"""Proof of humanity at the entry (W12): what passes, what does not, and that a proof is used once."""

import asyncio
import base64
import functools
import inspect
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import altcha
import pytest

from frontrow.core.errors import ConfigError, Overloaded, Unavailable
from frontrow.core.redis_url import connect, disconnect
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.entrance.device_fingerprint import fingerprint
from frontrow.waitingroom.entrance.human_check import (
    HCAPTCHA,
    RECAPTCHA,
    TURNSTILE,
    Captcha,
    NoCheck,
    NotHuman,
    ProofOfWork,
    UsedProofs,
)
from frontrow.waitingroom.entrance.used_proofs import MemoryUsedProofs, RedisUsedProofs

KEY = b"0123456789abcdef0123456789abcdef"
NOW_US = 1_700_000_000_000_000


def solved(challenge: Mapping[str, Any], /, **changes: Any) -> str:
    """What the browser sends back."""
    found = altcha.solve_challenge_v1(
        challenge["challenge"], challenge["salt"], challenge["algorithm"], challenge["maxnumber"]
    )
    assert found is not None
    payload = {name: challenge[name] for name in ("algorithm", "challenge", "salt", "signature")}
    return base64.b64encode(json.dumps(payload | {"number": found.number} | changes).encode()).decode()


def work(spent: UsedProofs | None = None, event: str = "aurora", max_number: int = 300) -> ProofOfWork:
    return ProofOfWork(KEY, event, spent or MemoryUsedProofs(), max_number=max_number)


async def settle(verdict: Any) -> None:
    if inspect.isawaitable(verdict):
        await verdict


def test_a_solved_challenge_passes_once_and_never_again() -> None:
    """W12."""
    check = work()
    proof = solved(check.challenge(NOW_US))
    assert check.verify(proof, "1.2.3.4", NOW_US) is None
    with pytest.raises(NotHuman, match="already used"):
        check.verify(proof, "1.2.3.4", NOW_US + 1)


def test_a_proof_lives_until_its_expiry_and_not_a_second_longer() -> None:
    check = work()
    challenge = check.challenge(NOW_US)
    assert check.verify(solved(challenge), "ip", NOW_US + 599_999_999) is None
    with pytest.raises(NotHuman, match="too old"):
        work().verify(solved(challenge), "ip", NOW_US + 600_000_000)


def test_a_proof_for_one_event_is_worthless_at_another() -> None:
    with pytest.raises(NotHuman):
        work(event="borealis").verify(solved(work().challenge(NOW_US)), "ip", NOW_US)


@pytest.mark.parametrize(
    "changes",
    [
        {"number": -1},
        {"number": "1"},
        {"signature": "0" * 64},
        {"challenge": "0" * 64},
        {"algorithm": "SHA-1"},
        {"algorithm": "none"},
        {"salt": "00?expires=9999999999&e=1&"},
        {"number": None},
        {"salt": 7},
    ],
)
def test_a_changed_proof_fails(changes: dict[str, Any]) -> None:
    check = work()
    with pytest.raises(NotHuman):
        check.verify(solved(check.challenge(NOW_US), **changes), "ip", NOW_US)


def test_a_piece_of_the_salt_moved_into_the_number_does_not_lengthen_its_life() -> None:
    check = work()
    challenge = check.challenge(NOW_US)
    payload = json.loads(base64.b64decode(solved(challenge)))
    head, _, tail = payload["salt"].partition("expires=")
    payload |= {"salt": head, "number": f"expires={tail}{payload['number']}"}
    with pytest.raises(NotHuman):
        check.verify(base64.b64encode(json.dumps(payload).encode()).decode(), "ip", NOW_US)


@pytest.mark.parametrize(
    "proof", [None, "", "x", "AAAA", "e30=", "\u00e9", "A" * 1_000_000, base64.b64encode(b"[]").decode()]
)
def test_rubbish_is_refused_with_a_code(proof: str | None) -> None:
    with pytest.raises(NotHuman) as caught:
        work().verify(proof, "ip", NOW_US)
    assert caught.value.problem()["code"] == "human_check_failed"
    assert caught.value.http_status == 403


def test_suspicion_makes_the_work_harder_up_to_a_bound() -> None:
    """W12: the fingerprint is a signal, not a verdict."""
    check = work()
    sizes = [check.challenge(NOW_US, suspicion=level)["maxnumber"] for level in (0, 1, 2, 3, 9)]
    assert sizes == [300, 1200, 4800, 19200, 19200]


def test_a_short_key_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="16 bytes"):
        ProofOfWork(b"short", "aurora", MemoryUsedProofs())


def test_the_fingerprint_is_stable_and_differs_by_device() -> None:
    phone = [(b"User-Agent", b"Phone"), (b"Accept-Language", b"de")]
    again = [(b"user-agent", b"Phone"), (b"accept-language", b"de"), (b"cookie", b"x")]
    assert fingerprint(phone, "1.2.3.4") == fingerprint(again, "1.2.3.4")
    assert fingerprint(phone, "1.2.3.4") != fingerprint([(b"User-Agent", b"Laptop")], "1.2.3.4")


def test_no_check_lets_everybody_try() -> None:
    assert NoCheck().verify(None, "ip", NOW_US) is None


class Provider:
    """A CAPTCHA provider that answers as told and remembers what it was asked."""

    def __init__(self, verdict: Any) -> None:
        self.verdict = verdict
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def __call__(self, url: str, fields: Mapping[str, str]) -> Any:
        self.asked.append((url, dict(fields)))
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


@pytest.mark.parametrize(
    ("adapter", "host"),
    [
        (functools.partial(Captcha, TURNSTILE), "challenges.cloudflare.com"),
        (functools.partial(Captcha, HCAPTCHA), "hcaptcha.com"),
        (functools.partial(Captcha, RECAPTCHA), "www.google.com"),
    ],
)
class TestCaptcha:
    async def test_the_provider_is_asked_with_our_secret_and_believed(self, adapter: Any, host: str) -> None:
        """W12."""
        provider = Provider({"success": True, "hostname": "shop.example"})
        await adapter("site", "secret", hostnames=["shop.example"], post=provider).verify("proof", "1.2.3.4", NOW_US)
        url, fields = provider.asked[0]
        assert host in url
        assert url.startswith("https://")
        assert (fields["secret"], fields["response"], fields["remoteip"]) == ("secret", "proof", "1.2.3.4")

    @pytest.mark.parametrize(
        "verdict",
        [
            {"success": False, "error-codes": ["timeout-or-duplicate"]},
            {"success": "true"},
            {"success": True},
            {"success": 1},
        ],
    )
    async def test_anything_but_a_plain_yes_for_our_host_is_a_no(self, adapter: Any, host: str, verdict: Any) -> None:
        with pytest.raises(NotHuman):
            await adapter("site", "secret", hostnames=["shop.example"], post=Provider(verdict)).verify("p", "ip", 0)

    @pytest.mark.parametrize("trouble", [TimeoutError(), ConnectionError(), [], None, "<html>"])
    async def test_a_provider_that_is_down_refuses_or_allows(self, adapter: Any, host: str, trouble: Any) -> None:
        with pytest.raises(Unavailable):
            await adapter("site", "secret", post=Provider(trouble)).verify("p", "ip", 0)
        await adapter("site", "secret", post=Provider(trouble), when_down="allow").verify("p", "ip", 0)

    async def test_a_missing_proof_is_not_sent_to_the_provider(self, adapter: Any, host: str) -> None:
        provider = Provider({"success": True})
        for proof in (None, "", "x" * 5000):
            with pytest.raises(NotHuman):
                adapter("site", "secret", post=provider).verify(proof, "ip", 0)
        assert provider.asked == []

    def test_a_missing_secret_is_refused_at_the_start(self, adapter: Any, host: str) -> None:
        with pytest.raises(ConfigError):
            adapter("site", "")


# One contract for the two memories of used proofs, and a canary it must catch.


class ForgetfulProofs:
    """Checks, lets the loop turn, then remembers: two callers at once both win."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    async def mark_used(self, proof_id: str, ttl_s: int, now_us: int) -> bool:
        known = proof_id in self._seen
        await asyncio.sleep(0)
        self._seen.add(proof_id)
        return not known


@pytest.fixture(params=["memory", "redis"])
async def spent(request: pytest.FixtureRequest) -> AsyncIterator[UsedProofs]:
    if request.param == "memory":
        yield MemoryUsedProofs()
        return
    client = connect(request.getfixturevalue("redis_url"))
    adapter = RedisUsedProofs(client, "aurora")
    yield adapter
    await adapter.aclose()
    await disconnect(client)


async def winners(spent: UsedProofs, proof_id: str, callers: int = 100) -> int:
    async def one() -> bool:
        answer = spent.mark_used(proof_id, 60, NOW_US)
        return answer if isinstance(answer, bool) else await answer

    return sum(await asyncio.gather(*(one() for _ in range(callers))))


async def test_of_a_hundred_callers_with_one_proof_one_wins(spent: UsedProofs) -> None:
    """W12."""
    assert await winners(spent, "a") == 1
    assert await winners(spent, "a") == 0
    assert await winners(spent, "b") == 1


async def test_the_contract_catches_a_memory_that_checks_and_then_acts() -> None:
    assert await winners(ForgetfulProofs(), "a") > 1


async def test_every_used_proof_in_redis_expires_by_itself(redis_url: str) -> None:
    client = connect(redis_url)
    await RedisUsedProofs(client, "aurora").mark_used("a", 60, NOW_US)
    keys = await client.keys("*")
    assert len(keys) == 1
    assert 0 < await client.ttl(keys[0]) <= 60
    await disconnect(client)


async def test_a_store_that_does_not_answer_is_said_so() -> None:
    client = connect("redis://127.0.0.1:1/0")
    with pytest.raises(Unavailable):
        await RedisUsedProofs(client, "aurora").mark_used("a", 60, NOW_US)
    await disconnect(client)


def test_memory_forgets_what_has_expired_and_holds_its_cap(clock: ManualClock) -> None:
    spent = MemoryUsedProofs(generation_s=60, max_ids=100)
    for number in range(100):
        assert spent.mark_used(str(number), 60, clock())
    with pytest.raises(Overloaded):
        spent.mark_used("one more", 60, clock())
    assert not spent.mark_used("99", 60, clock.advance(59.999999))
    clock.advance(us=1)
    assert spent.mark_used("99", 60, clock.advance(60))
    with pytest.raises(ValueError, match="at most 60"):
        spent.mark_used("long", 61, clock())
