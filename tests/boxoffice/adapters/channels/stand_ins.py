"""Stand-ins for Twilio, FCM and SES, written from their public documentation: each checks what the real one checks,
answers in its form, and keeps what it took.

Nothing here has ever talked to the real ones. A stand-in refuses a wrong signature, token or field, so a test that
passes says that our request has the documented form, not that the real server takes it.
"""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from email.message import EmailMessage
from email.parser import BytesParser
from email.policy import default
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

Answer = tuple[int, dict[str, Any]]


class StandIn:
    """An HTTP server. `away`: it closes each connection. `busy`: it answers 429. `lose`: so many answers get lost after
    the request was carried out."""

    def __init__(self) -> None:
        self.port, self.calls, self.taken = 0, 0, 0
        self.away, self.busy, self.lose = False, False, 0
        self.hang: asyncio.Event | None = None  # the answer to what was taken waits for it

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        raise NotImplementedError

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, target, _ = head[0].split(" ")
            self.calls += 1
            if not self.away:
                before = self.taken
                status, found = (429, {}) if self.busy else self.answer(method, target, headers, body)
                if self.hang is not None and self.taken > before:
                    await self.hang.wait()
                if self.lose and self.taken > before:
                    self.lose -= 1
                else:
                    text = json.dumps(found).encode()
                    start = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n"
                    writer.write(f"{start}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text)
                    await writer.drain()
        writer.close()

    @contextlib.asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()


class TwilioStandIn(StandIn):
    """Messages of one account: created by POST, listed by GET."""

    account, token, number = "AC" + "0" * 32, "a Twilio token", "+15005550006"

    def __init__(self, now: Callable[[], int]) -> None:
        super().__init__()
        self.messages: list[dict[str, Any]] = []
        self.refused: dict[str, int] = {}  # a number and Twilio's code of why
        self._now = now

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        basic = base64.b64encode(f"{self.account}:{self.token}".encode()).decode()
        if headers.get("authorization") != f"Basic {basic}":
            return 401, {"code": 20003, "message": "Authenticate", "status": 401}
        parts = urlsplit(target)
        if parts.path != f"/2010-04-01/Accounts/{self.account}/Messages.json":
            return 404, {"code": 20404, "status": 404}
        if method == "GET":
            asked = dict(parse_qsl(parts.query))
            assert set(asked) <= {"To", "DateSent>", "PageSize"}, asked
            found = [one for one in reversed(self.messages) if one["to"] == asked["To"]]
            return 200, {"messages": found[: int(asked["PageSize"])]}
        form = dict(parse_qsl(body.decode()))
        if form.get("From") != self.number or not form.get("Body") or len(form["Body"]) > 1_600:
            return 400, {"code": 21603, "message": "a From and a Body are required", "status": 400}
        if form["To"] in self.refused:
            return 400, {"code": self.refused[form["To"]], "status": 400}
        made = datetime.fromtimestamp(self._now() // 1_000_000, UTC)
        message = {
            "sid": f"SM{len(self.messages):032x}",
            "to": form["To"],
            "from": form["From"],
            "body": form["Body"],
            "status": "queued",
            "direction": "outbound-api",
            "date_created": format_datetime(made),
            "error_code": None,
        }
        self.messages.append(message)
        self.taken += 1
        self.callback = form.get("StatusCallback", "")
        return 201, message

    def signed(self, url: str, form: dict[str, str]) -> dict[str, str]:
        """The header of a callback, as Twilio's page about security computes it."""
        text = url + "".join(f"{name}{form[name]}" for name in sorted(form))
        digest = hmac.new(self.token.encode(), text.encode(), hashlib.sha1).digest()
        return {"x-twilio-signature": base64.b64encode(digest).decode()}


class FcmStandIn(StandIn):
    """Gives tokens for signed assertions, and takes messages with such a token."""

    def __init__(self, key: RSAKey, now: Callable[[], int]) -> None:
        super().__init__()
        self._key, self._now = key, now
        self.shown: dict[str, dict[str, str]] = {}  # device -> what it shows, by the collapse id
        self.gone: set[str] = set()
        self.tokens = 0
        self.valid = ""

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if target == "/token":
            form = dict(parse_qsl(body.decode()))
            claims = jwt.decode(form["assertion"], self._key, algorithms=["RS256"]).claims
            assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
            assert claims["aud"] == f"{self.url}/token"
            assert claims["iss"] == "push@fair.iam.gserviceaccount.com"
            assert claims["scope"] == "https://www.googleapis.com/auth/firebase.messaging"
            assert claims["iat"] == self._now() // 1_000_000
            assert claims["exp"] - claims["iat"] == 3600
            self.tokens += 1
            self.valid = f"ya29.{self.tokens}"
            return 200, {"access_token": self.valid, "expires_in": 3599, "token_type": "Bearer"}
        if target != "/v1/projects/fair/messages:send" or method != "POST":
            return 404, {"error": {"status": "NOT_FOUND"}}
        if headers.get("authorization") != f"Bearer {self.valid}":
            return 401, {"error": {"code": 401, "status": "UNAUTHENTICATED"}}
        message = json.loads(body)["message"]
        assert set(message) == {"token", "notification", "data", "android", "apns"}
        assert all(isinstance(value, str) for value in message["data"].values())
        same = message["apns"]["headers"]["apns-collapse-id"]
        assert len(same) <= 64
        assert message["android"]["notification"]["tag"] == same
        if message["token"] in self.gone:
            kind = "type.googleapis.com/google.firebase.fcm.v1.FcmError"
            details = [{"@type": kind, "errorCode": "UNREGISTERED"}]
            return 404, {"error": {"code": 404, "status": "NOT_FOUND", "details": details}}
        self.shown.setdefault(message["token"], {})[same] = message["notification"]["body"]
        self.taken += 1
        return 200, {"name": f"projects/fair/messages/{self.taken}"}


class SesStandIn(StandIn):
    """Takes raw mails that are signed with its key, by the steps of AWS's documentation."""

    key_id, secret, region = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "eu-west-1"

    def __init__(self) -> None:
        super().__init__()
        self.mails: list[tuple[str, EmailMessage]] = []
        self.refused: set[str] = set()
        self.asked: dict[str, Any] = {}

    def answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        if headers.get("authorization") != self._signature(method, target, headers, body):
            return 403, {"__type": "SignatureDoesNotMatchException", "message": "the signature does not match"}
        self.asked = json.loads(body)
        try:
            (to,) = self.asked["Destination"]["ToAddresses"]
            raw = base64.b64decode(self.asked["Content"]["Raw"]["Data"])
        except (KeyError, ValueError):
            return 400, {"__type": "BadRequestException", "message": "a parameter is missing"}
        if to in self.refused:
            return 400, {"__type": "MessageRejected", "message": "this address is not verified"}
        parsed = BytesParser(_class=EmailMessage, policy=default).parsebytes(raw)
        assert parsed["From"] == self.asked["FromEmailAddress"]
        self.mails.append((to, parsed))
        self.taken += 1
        return 200, {"MessageId": f"0100{self.taken:04}"}

    def _signature(self, method: str, target: str, headers: dict[str, str], body: bytes) -> str:
        names = "content-type;host;x-amz-date"
        lines = "".join(f"{name}:{headers.get(name, '')}\n" for name in names.split(";"))
        request = f"{method}\n{target}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        moment = headers.get("x-amz-date", "")
        scope = f"{moment[:8]}/{self.region}/ses/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{self.secret}".encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        given = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        return f"AWS4-HMAC-SHA256 Credential={self.key_id}/{scope}, SignedHeaders={names}, Signature={given}"
