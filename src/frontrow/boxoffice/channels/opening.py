"""Opens the mail channel by URL: a folder for .eml files (the embedded default) or `smtp://user:password@host:587`."""

from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from frontrow.boxoffice.channels.email import FolderChannel, SmtpChannel
from frontrow.boxoffice.message_ports import Channel
from frontrow.core.errors import ConfigError

DEFAULT_SENDER = "tickets@localhost"


def open_mail(url: str) -> Channel:
    """`smtp://` (STARTTLS when offered), `smtps://` (TLS from the start), anything else is a folder. `?from=` sets the
    sender."""
    parts = urlsplit(url)
    sender = parse_qs(parts.query).get("from", [DEFAULT_SENDER])[0]
    if parts.scheme not in ("smtp", "smtps"):
        if "://" in url:
            raise ConfigError(f"mail {url!r} must be a folder, smtp://… or smtps://…", param="mail")
        return FolderChannel(Path(url))
    if not parts.hostname:
        raise ConfigError("mail: smtp:// needs a host, like smtp://mail.example.org:587?from=tickets@example.org")
    return SmtpChannel(
        parts.hostname,
        parts.port or (465 if parts.scheme == "smtps" else 587),
        sender,
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        use_tls=parts.scheme == "smtps",
    )
