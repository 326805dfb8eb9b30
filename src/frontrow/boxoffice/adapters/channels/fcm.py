"""Push to apps through Firebase Cloud Messaging (HTTP v1), which also reaches Apple's devices by APNs.

A service account signs a short-lived JWT, for which Google gives a token that is used until shortly before its end. A
message carries its id as the key by which a device shows a second copy in place of the first.
"""

import asyncio
import base64
from collections.abc import Mapping
from typing import Any, Final

import httpx
import msgspec
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from frontrow.boxoffice.messages.model.messages import SENT, Message, Outcome
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import ConfigError

API: Final = "https://fcm.googleapis.com"
SCOPE: Final = "https://www.googleapis.com/auth/firebase.messaging"
GRANT: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TIMEOUT_S: Final = 10.0
JWT_LIFE_S: Final = 3600
MARGIN_S: Final = 300  # a token is renewed so long before its end
TTL_S: Final = 24 * 3600
MAX_COLLAPSE_CHARS: Final = 64  # of apns-collapse-id
GONE: Final = frozenset({"UNREGISTERED", "SENDER_ID_MISMATCH"})  # the device will never take a message of ours
MAX_TEXT_CHARS: Final = 1_000  # a message has at most 4,096 bytes


class ServiceAccount(msgspec.Struct, frozen=True):
    """The JSON file that Google makes for a service account."""

    project_id: str
    client_email: str
    private_key: str
    token_uri: str = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address
    private_key_id: str = ""

    def __repr__(self) -> str:
        return f"ServiceAccount({self.client_email})"


def read_service_account(text: bytes) -> ServiceAccount:
    """The account of a file's content. `ConfigError` says what is wrong with it."""
    try:
        account = msgspec.json.decode(text, type=ServiceAccount)
        key = load_pem_private_key(account.private_key.encode(), None)
    except (msgspec.MsgspecError, ValueError, TypeError):
        raise ConfigError(
            "messages.fcm_file is no key file of a Google service account (JSON with project_id, client_email and "
            "private_key)",
            param="messages.fcm_file",
        ) from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise ConfigError("the key in messages.fcm_file is not an RSA key", param="messages.fcm_file")
    return account


class FcmPusher:
    """Sends to one device at a time."""

    def __init__(self, account: ServiceAccount, clock: Clock, *, api: str = API, timeout_s: float = TIMEOUT_S) -> None:
        self._account, self._clock = account, clock
        self._url = f"{api}/v1/projects/{account.project_id}/messages:send"
        key = load_pem_private_key(account.private_key.encode(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._key = key
        self._client = httpx.AsyncClient(timeout=timeout_s, trust_env=False)
        self._token, self._until_us = "", 0
        self._renewing = asyncio.Lock()

    async def send(self, device: str, message: Message) -> Outcome:
        """Send to the device with this registration token."""
        try:
            token = await self._access_token()
            headers = {"authorization": f"Bearer {token}"}
            response = await self._client.post(self._url, json=_note(device, message), headers=headers)
        except httpx.HTTPError as error:
            return Outcome(False, final=False, reason=f"FCM: {type(error).__name__}")
        except _NoToken as error:
            return Outcome(False, final=False, reason=str(error))
        if response.is_success:
            return SENT
        if response.status_code == 401:
            self._until_us = 0  # the next try asks for a new token
        code = _error_code(response)
        reason = f"FCM answered {response.status_code} {code}".strip()
        return Outcome(False, final=code in GONE or code == "INVALID_ARGUMENT", reason=reason)

    async def _access_token(self) -> str:
        async with self._renewing:  # many devices wait for one token
            if self._clock() < self._until_us:
                return self._token
            form = {"grant_type": GRANT, "assertion": self._assertion(self._clock() // US_PER_S)}
            response = await self._client.post(self._account.token_uri, data=form)
            try:
                found = msgspec.json.decode(response.content, type=_Token)
            except msgspec.MsgspecError:
                raise _NoToken(f"FCM: no token for the service account ({response.status_code})") from None
            self._token = found.access_token
            self._until_us = self._clock() + max(0, found.expires_in - MARGIN_S) * US_PER_S
            return self._token

    def _assertion(self, now_s: int) -> str:
        """The signed JWT by which the service account asks for a token."""
        head = {"alg": "RS256", "typ": "JWT"}
        if self._account.private_key_id:
            head["kid"] = self._account.private_key_id
        claims = {
            "iss": self._account.client_email,
            "scope": SCOPE,
            "aud": self._account.token_uri,
            "iat": now_s,
            "exp": now_s + JWT_LIFE_S,
        }
        text = f"{_url_safe(msgspec.json.encode(head))}.{_url_safe(msgspec.json.encode(claims))}"
        signature = self._key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{_url_safe(signature)}"

    async def aclose(self) -> None:
        await self._client.aclose()


class _Token(msgspec.Struct):
    access_token: str
    expires_in: int = 0


class _NoToken(Exception):
    """Google gives no token."""


def _note(device: str, message: Message) -> dict[str, Any]:
    """The message for Android and for Apple's devices."""
    same = message.id[-MAX_COLLAPSE_CHARS:]
    return {
        "message": {
            "token": device,
            "notification": {"title": message.subject[:MAX_TEXT_CHARS], "body": message.short[:MAX_TEXT_CHARS]},
            "data": {"id": message.id, "url": message.url},
            "android": {"priority": "HIGH", "ttl": f"{TTL_S}s", "notification": {"tag": same}},
            "apns": {"headers": {"apns-priority": "10", "apns-collapse-id": same}},
        }
    }


def _error_code(response: httpx.Response) -> str:
    """FCM's own code of an error; where there is none, the general one."""
    try:
        error = msgspec.json.decode(response.content)["error"]
        for detail in error.get("details", ()):
            if isinstance(detail, Mapping) and str(detail.get("@type", "")).endswith("FcmError"):
                return str(detail.get("errorCode", ""))
        return str(error.get("status", ""))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return ""


def _url_safe(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
