"""The mails a shop under test sent: from its outbox folder, or from a real SMTP server."""

import email
import email.message
import email.policy
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller

from tests.support.eventually import eventually_sync
from tests.support.servers import free_port

WAIT_S = 120  # a busy machine takes its time


class Mail:
    """One mail as its reader sees it."""

    def __init__(self, raw: bytes) -> None:
        self.message = email.message_from_bytes(raw, policy=email.policy.default)

    @property
    def to(self) -> str:
        return str(self.message["To"])

    @property
    def subject(self) -> str:
        return str(self.message["Subject"])

    @property
    def text(self) -> str:
        """The plain-text body."""
        return self._body("plain")

    @property
    def html(self) -> str:
        """The HTML body, or nothing."""
        return self._body("html")

    def _body(self, kind: str) -> str:
        body = self.message.get_body((kind,))
        return str(body.get_content()) if body is not None else ""

    def attachments(self) -> dict[str, bytes]:
        """The attached files by name."""
        return {
            str(part.get_filename()): bytes(part.get_payload(decode=True) or b"")  # type: ignore[arg-type]
            for part in self.message.iter_attachments()
        }

    def links(self) -> list[str]:
        """Every address in the plain-text body, in order."""
        return re.findall(r"https?://[^\s<>]+", self.text)

    def __repr__(self) -> str:
        return f"Mail({self.to!r}, {self.subject!r})"


class Mailbox:
    """All mails so far; `read` gives their raw bytes, oldest first."""

    def __init__(self, read: Callable[[], list[bytes]]) -> None:
        self._read = read

    def mails(self, to: str = "") -> list[Mail]:
        """Mails to one address, or all of them; oldest first."""
        return [mail for mail in map(Mail, self._read()) if not to or mail.to == to]

    def wait_for(self, to: str, matching: str = "", *, skip: int = 0) -> Mail:
        """The first mail to `to` whose subject or text matches; `skip` so many that do. Waits for it to come."""

        def wanted(mails: list[Mail]) -> list[Mail]:
            return [mail for mail in mails if re.search(matching, f"{mail.subject}\n{mail.text}")][skip:]

        return wanted(eventually_sync(lambda: self.mails(to), WAIT_S, until=wanted))[0]


def folder_mailbox(folder: Path) -> Mailbox:
    """The mails that an embedded shop wrote into its outbox folder."""

    def read() -> list[bytes]:
        files = sorted(folder.rglob("*.eml"), key=lambda one: one.stat().st_mtime_ns)
        return [file.read_bytes() for file in files]

    return Mailbox(read)


class SmtpServer:
    """A real mail server on a free port that keeps what it is given."""

    def __init__(self, listen: str = "127.0.0.1") -> None:
        self._kept: list[bytes] = []
        self._lock = threading.Lock()
        self._controller = Controller(self, hostname=listen, port=free_port())

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        with self._lock:
            self._kept.append(envelope.content)
        return "250 OK"

    def start(self) -> None:
        self._controller.start()

    def stop(self) -> None:
        self._controller.stop()

    @property
    def url(self) -> str:
        """As `mail.url` in the settings."""
        return f"smtp://127.0.0.1:{self._controller.port}?from=tickets@example.org"

    def mailbox(self) -> Mailbox:
        def read() -> list[bytes]:
            with self._lock:
                return list(self._kept)

        return Mailbox(read)
