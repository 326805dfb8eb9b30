"""Checks that a join comes from a person: the implementations of `HumanCheck`.

`ProofOfWork` (altcha, self-hosted, the default) makes each join cost the browser a moment of hashing. A proof is bound
to the event and counts once. `Captcha` verifies with Turnstile, hCaptcha or reCAPTCHA. `NoCheck` lets everybody join. A
device fingerprint never causes a refusal: a device that joins again and again gets harder work. The limits per
person and per IP (`person_and_address_limits`) apply before this check.
"""

import base64
import binascii
import datetime
import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from altcha import v1 as altcha

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError, Forbidden, Unavailable
from frontrow.waitingroom.ports import UsedProofs

MAX_PROOF_BYTES = 4096


class NotHuman(Forbidden):
    """The proof is missing, wrong, too old or used; get a new challenge and try again."""

    code = "human_check_failed"


class NoCheck:
    """Checks nothing; the limits still apply."""

    name = "none"
    site_key = ""

    def challenge(self, now_us: int, *, suspicion: int = 0) -> dict[str, Any]:
        return {"kind": self.name}

    def verify(self, proof: str | None, ip: str, now_us: int) -> None:
        return None


class _Solution(msgspec.Struct):
    """An altcha payload, strictly typed: a number sent as text could carry a piece of the salt."""

    algorithm: str
    challenge: str
    number: int
    salt: str
    signature: str


_decode_solution = msgspec.json.Decoder(_Solution).decode


class ProofOfWork:
    """Altcha: the browser finds the number whose hash with a salt is the challenge. Costs the server two hashes."""

    name = "altcha"
    site_key = ""

    def __init__(
        self, key: bytes, event: str, used_proofs: UsedProofs, *, max_number: int = 50_000, ttl_s: int = 600
    ) -> None:
        if len(key) < 16:
            raise ConfigError("the proof-of-work key must have at least 16 bytes", param="human_key")
        self._key = hmac.digest(key, b"frontrow proof of work " + event.encode(), "sha256").hex()
        self._event = event
        self._used_proofs = used_proofs
        self._max_number = max_number
        self._ttl_s = ttl_s

    def challenge(self, now_us: int, *, suspicion: int = 0) -> dict[str, Any]:
        expires = datetime.datetime.fromtimestamp(now_us // US_PER_S + self._ttl_s, datetime.UTC)
        max_number = self._max_number << (2 * min(max(suspicion, 0), 3))
        created = altcha.create_challenge(
            altcha.ChallengeOptions(
                algorithm="SHA-256", hmac_key=self._key, max_number=max_number, expires=expires, params={"e": "1"}
            )
        )
        return {
            "kind": self.name,
            "algorithm": created.algorithm,
            "challenge": created.challenge,
            "salt": created.salt,
            "signature": created.signature,
            "maxnumber": max_number,
        }

    def verify(self, proof: str | None, ip: str, now_us: int) -> Awaitable[None] | None:
        signature, ttl_s = self._check_solution(proof, now_us)
        first = self._used_proofs.mark_used(signature, ttl_s, now_us)
        if not isinstance(first, bool):
            return _refuse_used_later(first)
        _refuse_used(first)
        return None

    def _check_solution(self, proof: str | None, now_us: int) -> tuple[str, int]:
        """The proof's id and how long it must be stored. Raises NotHuman for a wrong or expired proof."""
        solution = _parse_solution(proof)
        payload: Any = msgspec.structs.asdict(solution)
        expires = altcha.extract_params(payload).get("expires", [""])
        right, _ = altcha.verify_solution(payload, self._key, check_expires=False)
        if not right or solution.algorithm != "SHA-256" or len(expires) != 1 or not expires[0].isdecimal():
            raise NotHuman("the proof of work is not a solution of our challenge; ask for a new one")
        left_s = int(expires[0]) - now_us // US_PER_S
        if left_s <= 0:
            raise NotHuman("the proof of work is too old; ask for a new challenge")
        return solution.signature, left_s


def _parse_solution(proof: str | None) -> _Solution:
    if not proof:
        raise NotHuman("send the solved challenge as `proof`; GET …/challenge gives you one", param="proof")
    if len(proof) > MAX_PROOF_BYTES:
        raise NotHuman("the proof is too long", param="proof")
    try:
        return _decode_solution(base64.b64decode(proof, validate=True))
    except (msgspec.MsgspecError, binascii.Error, ValueError):
        raise NotHuman("the proof is not an altcha payload (base64 of JSON)", param="proof") from None


def _refuse_used(first: bool) -> None:
    if not first:
        raise NotHuman("this proof of work was already used; ask for a new challenge")


async def _refuse_used_later(first: Awaitable[bool]) -> None:
    _refuse_used(await first)


Post = Callable[[str, Mapping[str, str]], Awaitable[Any]]


async def post_form(url: str, fields: Mapping[str, str]) -> Any:
    """Send a form and return the JSON of the response; 3 s at most."""
    import httpx

    async with httpx.AsyncClient(timeout=3.0) as client:
        answer = await client.post(url, data=dict(fields))
        answer.raise_for_status()
        return answer.json()


@dataclass(frozen=True, slots=True)
class CaptchaProvider:
    """A service whose widget makes proofs: its name, the URL that verifies them, and its additional fields."""

    name: str
    url: str
    extra_fields: Callable[[str, str], dict[str, str]]  # of the site key and the proof


def _turnstile_fields(site_key: str, proof: str) -> dict[str, str]:
    """An idempotency key, so that Cloudflare accepts a repeated request of ours."""
    digest = hashlib.sha256(proof.encode()).hexdigest()
    return {"idempotency_key": f"{digest[:8]}-{digest[8:12]}-4{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"}


def _hcaptcha_fields(site_key: str, proof: str) -> dict[str, str]:
    """Our site key, so that a proof made for another site is refused."""
    return {"sitekey": site_key}


def _no_fields(site_key: str, proof: str) -> dict[str, str]:
    """reCAPTCHA takes nothing more; it tells the host name, which `human_hostnames` compares."""
    return {}


TURNSTILE = CaptchaProvider("turnstile", "https://challenges.cloudflare.com/turnstile/v0/siteverify", _turnstile_fields)
HCAPTCHA = CaptchaProvider("hcaptcha", "https://api.hcaptcha.com/siteverify", _hcaptcha_fields)
RECAPTCHA = CaptchaProvider("recaptcha", "https://www.google.com/recaptcha/api/siteverify", _no_fields)
CAPTCHAS: Mapping[str, CaptchaProvider] = {one.name: one for one in (TURNSTILE, HCAPTCHA, RECAPTCHA)}


class Captcha:
    """Implements `HumanCheck`: the provider's widget makes the proof, and the provider verifies it."""

    def __init__(
        self,
        provider: CaptchaProvider,
        site_key: str,
        secret: str,
        *,
        hostnames: Sequence[str] = (),
        post: Post = post_form,
        when_down: str = "refuse",
    ) -> None:
        self.name = provider.name
        if not site_key or not secret:
            raise ConfigError(f"{self.name} needs its site key and its secret", param="human_secret")
        if when_down not in ("refuse", "allow"):
            raise ConfigError(f"when_down must be refuse or allow, not {when_down!r}", param="human_when_down")
        self.site_key = site_key
        self._provider = provider
        self._secret = secret
        self._hostnames = frozenset(hostnames)
        self._post = post
        self._when_down = when_down

    def challenge(self, now_us: int, *, suspicion: int = 0) -> dict[str, Any]:
        return {"kind": self.name, "sitekey": self.site_key}

    def verify(self, proof: str | None, ip: str, now_us: int) -> Awaitable[None]:
        if not proof or len(proof) > MAX_PROOF_BYTES:
            raise NotHuman(f"send the {self.name} response as `proof`", param="proof")
        return self._verify_with_provider(proof, ip)

    async def _verify_with_provider(self, proof: str, ip: str) -> None:
        fields = {"secret": self._secret, "response": proof, "remoteip": ip}
        fields |= self._provider.extra_fields(self.site_key, proof)
        try:
            reply = await self._post(self._provider.url, fields)
            success, hostname = reply["success"], reply.get("hostname", "")
        except Exception as error:
            if self._when_down == "allow":
                return
            raise Unavailable(f"{self.name} does not answer; try again", retry_after_s=5) from error
        if success is not True or (self._hostnames and hostname not in self._hostnames):
            raise NotHuman(f"{self.name} did not confirm that you are a person; try again", param="proof")
