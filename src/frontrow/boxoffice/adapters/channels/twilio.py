"""SMS through Twilio's Messages API, and what Twilio reports: how each SMS ended, and STOP and START from phones.

Twilio has no key by which it recognises a repeated call. So before each SMS its list of the messages to this number is
read: one with the same text that is not older than the message itself is this one, and is not sent again. A report is
genuine if Twilio signed the address that it called and the fields of its form with our token.
"""

import base64
import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import httpx
import msgspec

from frontrow.boxoffice.adapters.channels.sms import MAX_CHARS, SmsProviderAway
from frontrow.boxoffice.messages.model.channel_reports import ChannelReport, ReportKind
from frontrow.boxoffice.messages.model.messages import SENT, Outcome
from frontrow.boxoffice.messages.model.phone_numbers import PHONE
from frontrow.boxoffice.messages.ports.channels import Sms
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput, Unauthorised
from frontrow.core.failures import note_failure

API: Final = "https://api.twilio.com"
TIMEOUT_S: Final = 10.0
SIGNATURE: Final = "x-twilio-signature"
NEWEST: Final = 20  # messages to one number that are looked through
SPREAD_US: Final = 60 * US_PER_S  # Twilio's clock has seconds, and is not ours
# Twilio's error codes that mean that this number can never be reached
GONE: Final = frozenset({21211, 21214, 21610, 21614, 30005, 30006, 30011})
STOPPED: Final = 21610  # the person answered STOP
FAILED: Final = frozenset({"failed", "undelivered", "canceled"})
# words by which a person ends or resumes messages, as Twilio knows them
STOP_WORDS: Final = frozenset({"STOP", "STOPALL", "UNSUBSCRIBE", "CANCEL", "END", "QUIT", "REVOKE", "OPTOUT"})
START_WORDS: Final = frozenset({"START", "YES", "UNSTOP"})
MAX_FIELDS: Final = 200


class TwilioSms:
    """See SmsProvider. `sender` is a number of ours, or the id of a messaging service (MG…)."""

    def __init__(
        self,
        account: str,
        auth_token: str,
        sender: str,
        *,
        callback_url: str = "",
        api: str = API,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._sender = {"MessagingServiceSid" if sender.startswith("MG") else "From": sender}
        self._callback_url = callback_url
        self._url = f"{api}/2010-04-01/Accounts/{account}/Messages.json"
        self._client = httpx.AsyncClient(timeout=timeout_s, auth=(account, auth_token), trust_env=False)

    async def send(self, sms: Sms) -> Outcome:
        form = {"To": sms.phone, "Body": sms.text[:MAX_CHARS], **self._sender}
        if self._callback_url:
            form["StatusCallback"] = f"{self._callback_url}?{urlencode({'message': sms.key})}"
        try:
            if await self._was_sent(sms):
                return SENT
            response = await self._client.post(self._url, data=form)
        except httpx.HTTPError as error:
            return _away(f"Twilio: {type(error).__name__}")
        except _NotReadable as error:
            return _away(str(error))
        if response.is_success:
            return SENT
        code = _body(response).get("code")
        reason = f"Twilio answered {response.status_code} {code or ''}".strip()
        if code in GONE or (response.status_code == 400 and code == 21408):  # 21408: this region is switched off
            return Outcome(False, reason=reason)
        return _away(reason)  # also a wrong token or an empty account, which somebody mends

    async def _was_sent(self, sms: Sms) -> bool:
        """Whether Twilio has this SMS already: an earlier answer was lost, or its worker died."""
        since_us = sms.since_us - SPREAD_US
        day = datetime.fromtimestamp(max(0, since_us) // US_PER_S, UTC).date().isoformat()
        query = {"To": sms.phone, "DateSent>": day, "PageSize": str(NEWEST)}
        response = await self._client.get(self._url, params=query)
        if not response.is_success:
            raise _NotReadable(f"Twilio answered {response.status_code} to what was sent before")
        found = _body(response).get("messages")
        return any(_is_copy(one, sms, since_us) for one in found) if isinstance(found, list) else False

    async def aclose(self) -> None:
        await self._client.aclose()


class _NotReadable(Exception):
    """Twilio does not say what it has sent."""


def _is_copy(found: Any, sms: Sms, since_us: int) -> bool:
    if not isinstance(found, dict) or found.get("body") != sms.text[:MAX_CHARS] or found.get("status") in FAILED:
        return False
    if found.get("to") != sms.phone or str(found.get("direction", "")).startswith("inbound"):
        return False
    try:
        made = parsedate_to_datetime(str(found.get("date_created", "")))
    except ValueError:
        return True
    return round(made.timestamp()) * US_PER_S >= since_us


def _body(response: httpx.Response) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(response.content)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _away(reason: str) -> Outcome:
    note_failure(SmsProviderAway(reason))
    return Outcome(False, final=False, reason=reason)


class TwilioReader:
    """See ReportReader: Twilio's status callbacks, and the messages that people send to our number."""

    name = "twilio"

    def __init__(self, account: str, auth_token: str) -> None:
        self._account, self._token = account, auth_token

    async def read(self, url: str, body: bytes, headers: Mapping[str, str], now_us: int) -> Sequence[ChannelReport]:
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
        except ValueError:
            raise InvalidInput("this is no form of Twilio", param="body") from None
        given = headers.get(SIGNATURE, "")
        if not given or not hmac.compare_digest(given.encode(), sign_form(self._token, url, fields).encode()):
            raise Unauthorised("the header X-Twilio-Signature does not fit; is server.public_url what Twilio calls?")
        form = dict(fields)
        if form.get("AccountSid") != self._account:
            raise Unauthorised("this report is of another Twilio account")
        report = _report(form, dict(parse_qsl(url.partition("?")[2])).get("message", ""))
        return [report] if report is not None else []


def sign_form(token: str, url: str, fields: Sequence[tuple[str, str]]) -> str:
    """Twilio's signature: of the address, then each field's name and value in the order of the names."""
    text = url + "".join(name + value for name, value in sorted(set(fields)))
    return base64.b64encode(hmac.digest(token.encode(), text.encode(), hashlib.sha1)).decode()


def _report(form: Mapping[str, str], message_id: str) -> ChannelReport | None:
    sid, state = form.get("MessageSid", ""), form.get("MessageStatus", "")
    if not state:
        return _answer(form, sid)
    phone, code = form.get("To", ""), form.get("ErrorCode", "")
    if not PHONE.fullmatch(phone):
        return None
    if state == "delivered":
        kind = ReportKind.DELIVERED
    elif state not in FAILED:
        return None  # queued, sending, sent: not its end
    elif code == str(STOPPED):
        kind = ReportKind.STOPPED
    else:
        kind = ReportKind.BOUNCED if code.isdigit() and int(code) in GONE else ReportKind.DELAYED
    return ChannelReport(f"{sid}/{state}", kind, "sms", phone, f"Twilio {code}".strip() if code else "", message_id)


def _answer(form: Mapping[str, str], sid: str) -> ChannelReport | None:
    """STOP or START from a phone. Twilio itself answers the person."""
    phone, word = form.get("From", ""), form.get("OptOutType") or form.get("Body", "")
    word = word.strip().upper()
    if not PHONE.fullmatch(phone):
        return None
    if word in STOP_WORDS:
        return ChannelReport(f"{sid}/stop", ReportKind.STOPPED, "sms", phone, "answered STOP")
    if word in START_WORDS:
        return ChannelReport(f"{sid}/start", ReportKind.RESUMED, "sms", phone, "answered START")
    return None
