"""E-mail with text, HTML, inline QR codes and attached tickets, over SMTP or as files in a folder."""

import asyncio
import contextlib
import errno
import os
import re
import secrets
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formataddr, formatdate
from pathlib import Path
from typing import Final

import aiosmtplib

from frontrow.boxoffice.messages.model.messages import SENT, Message, Outcome, not_tried
from frontrow.boxoffice.messages.ports.channels import NoteMessage
from frontrow.core.errors import Overloaded, Unavailable
from frontrow.core.failures import note_failure

TIMEOUT_S: Final = 20.0
SEVEN_BIT: Final = SMTP_POLICY.clone(cte_type="7bit")  # every mail server takes it
FULL: Final = (errno.ENOSPC, errno.EDQUOT)  # our own disk: no attempt to reach anybody was made
_ADDRESS: Final = re.compile(r"[^@\s<>,;\"]{1,64}@[^@\s<>,;\"]{1,255}")


class BadAddress(ValueError):
    """Mail to this address can never be delivered."""


class MailServerAway(Unavailable):
    """The mail server cannot be reached, or does not let us send."""


def build_email(message: Message, sender: str, sender_name: str = "") -> EmailMessage:
    """The message as an e-mail. Its Message-ID is the message's own id, so mail programs recognise a second copy."""
    if not _ADDRESS.fullmatch(message.contact.email):
        raise BadAddress("the person has no usable e-mail address")
    email = EmailMessage(policy=SMTP_POLICY)
    email["From"] = formataddr((sender_name, sender))
    email["To"] = message.contact.email
    if _ADDRESS.fullmatch(message.reply_to):
        email["Reply-To"] = message.reply_to
    email["Subject"] = message.subject
    email["Date"] = formatdate()
    email["Message-ID"] = f"<{message.id}@{sender.rpartition('@')[2]}>"
    email["Auto-Submitted"] = "auto-generated"
    email.set_content(message.text)
    inline = [one for one in message.attachments if one.media_type.startswith("image/")]
    if message.html:
        email.add_alternative(message.html, subtype="html")
        page = email.get_payload()[-1]  # type: ignore[index]
        for one in inline:
            kind, cid = one.media_type.partition("/")[2], f"<{one.name.rpartition('.')[0]}>"
            page.add_related(one.body, "image", kind, cid=cid, filename=one.name, disposition="inline")  # type: ignore[union-attr]
    for one in message.attachments:
        if one not in inline:
            kind, _, subtype = one.media_type.partition("/")
            email.add_attachment(one.body, kind, subtype, filename=one.name)
    return email


class SmtpChannel:
    """E-mail over an SMTP server, with one connection per batch.

    Making a mail takes milliseconds of CPU. Batches that are sent at once take turns with it, so that other work of the
    process waits for one mail and not for one of each batch.
    """

    name = "email"

    def __init__(
        self,
        host: str,
        port: int,
        sender: str,
        *,
        sender_name: str = "",
        username: str | None = None,
        password: str | None = None,
        use_tls: bool = False,
        start_tls: bool | None = None,
    ) -> None:
        self._sender, self._sender_name = sender, sender_name
        self._building = asyncio.Lock()
        self._options: dict[str, object] = {
            "hostname": host,
            "port": port,
            "username": username,
            "password": password,
            "use_tls": use_tls,
            "start_tls": start_tls,
            "timeout": TIMEOUT_S,
        }

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        outcomes: list[Outcome] = []
        try:
            async with aiosmtplib.SMTP(**self._options) as smtp:  # type: ignore[arg-type]
                for place, message in enumerate(messages):
                    outcomes.append(await self._send_one(smtp, message))
                    if note is not None:
                        await note(place, outcomes[-1])
        except (Unavailable, Overloaded) as error:
            outcomes += [not_tried(error)] * (len(messages) - len(outcomes))
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            note_failure(
                MailServerAway(f"mail server: {type(error).__name__}: {error}")
            )  # of the connection, not of a mail
            left = len(messages) - len(outcomes)
            outcomes += [Outcome(False, final=False, reason=f"mail server: {type(error).__name__}")] * left
        return outcomes

    async def look(self) -> None:
        """Connect and sign in as for a mail, and send none."""
        async with aiosmtplib.SMTP(**self._options) as smtp:  # type: ignore[arg-type]
            await smtp.noop()

    async def _send_one(self, smtp: aiosmtplib.SMTP, message: Message) -> Outcome:
        try:
            async with self._building:
                email = build_email(message, self._sender, self._sender_name)
                eight_bit = smtp.supports_extension("8bitmime")  # known after the first mail of a connection
                raw = email.as_bytes(policy=SMTP_POLICY if eight_bit else SEVEN_BIT)
            to = message.contact.email
            if to.isascii():
                options = ["BODY=8BITMIME"] if eight_bit else []
                await smtp.sendmail(self._sender, [to], raw, mail_options=options)
            else:
                await smtp.send_message(email)
        except (BadAddress, ValueError, aiosmtplib.SMTPRecipientsRefused) as error:
            return _refused(error)
        except aiosmtplib.SMTPResponseException as error:
            return Outcome(False, final=error.code >= 500, reason=f"{error.code} {error.message}")
        return SENT


def _refused(error: Exception) -> Outcome:
    """No address, or one that the server refuses. A 4xx (mailbox busy) is retried."""
    codes = [one.code for one in getattr(error, "recipients", [])]
    return Outcome(False, final=not codes or min(codes) >= 500, reason=str(error) or type(error).__name__)


class FolderChannel:
    """E-mail for the embedded server: one .eml file per message in a folder. Sending again writes the same file."""

    name = "email"

    def __init__(self, folder: Path, sender: str = "tickets@localhost") -> None:
        self._folder, self._sender = folder, sender

    async def send(self, messages: Sequence[Message], note: NoteMessage | None = None) -> list[Outcome]:
        outcomes = await asyncio.to_thread(lambda: [self._write(message) for message in messages])
        for error in outcomes:
            if isinstance(error, OSError):
                note_failure(error)
        return [_not_written(one) if isinstance(one, OSError) else one for one in outcomes]

    def _write(self, message: Message) -> Outcome | OSError:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", message.id)[:150]
        draft = self._folder / f".{name}.{secrets.token_hex(4)}"
        try:
            body = build_email(message, self._sender).as_bytes()
            self._folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(body)
            os.replace(draft, self._folder / f"{name}.eml")
        except (BadAddress, ValueError) as error:
            return _refused(error)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            return error
        return SENT


def _not_written(error: OSError) -> Outcome:
    return not_tried(error) if error.errno in FULL else Outcome(False, final=False, reason=str(error))
