"""Reads what Amazon SES reports through SNS: bounces, complaints and deliveries, and the request to confirm the topic.

Each message is signed with a key whose certificate SNS serves. It is genuine if it is of our topic, its certificate
comes from SNS's own address, the signature fits, and it is not older than SNS keeps trying. A request to confirm is
answered by a call to SNS's own address, for our topic only.
"""

import base64
import binascii
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from frontrow.boxoffice.messages.model.channel_reports import ChannelReport, ReportKind
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, Unauthorised, Unavailable
from frontrow.shared.log_lines import REPORTS_CONFIRMED

HOST: Final = re.compile(r"sns\.[a-z]{2}(-[a-z]+)+-[0-9]\.amazonaws\.com(\.cn)?", re.ASCII)
CERTIFICATE: Final = re.compile(r"/SimpleNotificationService-[0-9a-zA-Z]{1,64}\.pem", re.ASCII)
SIGNED: Final = {  # what of a message is signed, in this order, if it is there
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
HASHES: Final[Mapping[str, Callable[[], hashes.HashAlgorithm]]] = {
    "1": hashes.SHA1,
    "2": hashes.SHA256,
}
OLDEST_US: Final = 5 * 86_400 * US_PER_S  # the inbox remembers a week, so nothing is acted on twice
AHEAD_US: Final = 3600 * US_PER_S
MAX_CERTIFICATES: Final = 10
MAX_ANSWER_BYTES: Final = 16_384
TIMEOUT_S: Final = 10.0
PERMANENT: Final = "Permanent"

Fetch = Callable[[str], Awaitable[bytes]]


async def fetch_from_sns(url: str) -> bytes:
    """What SNS serves at this address, which was checked. Redirects are not followed."""
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client, client.stream("GET", url) as found:
            body = b""
            async for chunk in found.aiter_bytes():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    break
    except httpx.HTTPError as error:
        raise Unavailable(f"SNS does not answer ({type(error).__name__})") from error
    if not found.is_success:
        raise Unavailable(f"SNS answered {found.status_code}")
    return body


class SnsReader:
    """See ReportReader: what SES reports to this topic."""

    name = "ses"

    def __init__(self, topic: str, *, fetch: Fetch = fetch_from_sns) -> None:
        self._topic, self._fetch = topic, fetch
        self._certificates: dict[str, x509.Certificate] = {}

    async def read(self, url: str, body: bytes, headers: Mapping[str, str], now_us: int) -> Sequence[ChannelReport]:
        message = _decode(body)
        await self._check(message, now_us)
        if message["Type"] == "SubscriptionConfirmation":
            await self._fetch(_sns_url(message, "SubscribeURL"))
            REPORTS_CONFIRMED(channel="email")
            return ()
        return _reports(message)

    async def _check(self, message: Mapping[str, str], now_us: int) -> None:
        """Raise `Unauthorised` unless SNS signed this for our topic, not too long ago."""
        if message.get("TopicArn") != self._topic:
            raise Unauthorised("this message is not of the topic in messages.sns_topic")
        fields = SIGNED.get(message.get("Type", ""))
        made_hash = HASHES.get(message.get("SignatureVersion", ""))
        if fields is None or made_hash is None:
            raise Unauthorised("this kind of SNS message is not known here")
        if not now_us - OLDEST_US <= _moment_us(message.get("Timestamp", "")) <= now_us + AHEAD_US:
            raise Unauthorised("this SNS message is too old, or from the future")
        certificate = await self._certificate(message)
        begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if not begins <= datetime.fromtimestamp(now_us // US_PER_S, UTC) <= ends:
            raise Unauthorised("the certificate of this SNS message is not valid now")
        key, text = certificate.public_key(), "".join(f"{one}\n{message[one]}\n" for one in fields if one in message)
        if not isinstance(key, rsa.RSAPublicKey):
            raise Unauthorised("the certificate of this SNS message has another kind of key")
        try:
            given = base64.b64decode(message.get("Signature", ""), validate=True)
            key.verify(given, text.encode(), padding.PKCS1v15(), made_hash())
        except (InvalidSignature, binascii.Error, ValueError):
            raise Unauthorised("the signature of this SNS message does not fit") from None

    async def _certificate(self, message: Mapping[str, str]) -> x509.Certificate:
        url = _sns_url(message, "SigningCertURL")
        if not CERTIFICATE.fullmatch(urlsplit(url).path):
            raise Unauthorised("the certificate of this SNS message is not where SNS keeps its own")
        found = self._certificates.get(url)
        if found is None:
            try:
                found = x509.load_pem_x509_certificate(await self._fetch(url))
            except ValueError:
                raise Unauthorised("the certificate of this SNS message cannot be read") from None
            if len(self._certificates) >= MAX_CERTIFICATES:
                self._certificates.clear()
            self._certificates[url] = found
        return found


def _decode(body: bytes) -> dict[str, str]:
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"this is no SNS message: {error}", param="body") from None
    return {name: value for name, value in found.items() if isinstance(value, str)}


def _sns_url(message: Mapping[str, str], name: str) -> str:
    """An address in a message, if it is SNS's own: https, its host, no user and no other port."""
    url = message.get(name, "")
    try:
        parts = urlsplit(url)
        plain = parts.scheme == "https" and parts.netloc == (parts.hostname or "")
    except ValueError:
        plain = False
    if not plain or not HOST.fullmatch(parts.netloc):
        raise Unauthorised(f"{name} of this SNS message does not lead to SNS")
    return url


def _moment_us(text: str) -> int:
    try:
        return round(datetime.fromisoformat(text).timestamp() * US_PER_S)
    except ValueError:
        return 0


def _reports(message: Mapping[str, str]) -> list[ChannelReport]:
    """What SES says of each recipient. Texts that are no report of SES (SNS's test, opens, clicks) say nothing."""
    try:
        said = msgspec.json.decode(message["Message"], type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return []
    number = message["MessageId"]

    def report(place: int, kind: ReportKind, address: object, detail: object) -> ChannelReport:
        return ChannelReport(f"{number}/{place}", kind, "email", str(address), str(detail or ""))

    match said.get("eventType") or said.get("notificationType"), said:
        case "Bounce", {"bounce": {"bouncedRecipients": list(people)} as bounce}:
            kind = ReportKind.BOUNCED if bounce.get("bounceType") == PERMANENT else ReportKind.DELAYED
            return [
                report(
                    place, kind, one.get("emailAddress", ""), one.get("diagnosticCode") or bounce.get("bounceSubType")
                )
                for place, one in enumerate(people)
                if isinstance(one, dict)
            ]
        case "Complaint", {"complaint": {"complainedRecipients": list(people)} as complaint}:
            return [
                report(
                    place, ReportKind.COMPLAINED, one.get("emailAddress", ""), complaint.get("complaintFeedbackType")
                )
                for place, one in enumerate(people)
                if isinstance(one, dict)
            ]
        case "Delivery", {"delivery": {"recipients": list(people)}}:
            return [report(place, ReportKind.DELIVERED, one, "") for place, one in enumerate(people)]
        case _:
            return []
