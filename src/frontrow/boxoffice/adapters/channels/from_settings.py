"""Opens the configured channels: mail by URL, push and SMS from the settings section `messages`, and the in-app page.

Mail is a folder for .eml files (the default) or `smtp://user:password@host:587?from=tickets@example.org`.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from frontrow.boxoffice.adapters.channels.email import FolderChannel, SmtpChannel
from frontrow.boxoffice.adapters.channels.in_app import InAppChannel
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.core.clock import Clock
from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import setting

DEFAULT_SENDER = "tickets@localhost"
UNREADABLE = (
    "mail: this URL cannot be read; a port is a number, and / ? # [ ] @ in a password are written as "
    "%2F %3F %23 %5B %5D %40"
)


@dataclass(frozen=True)
class MessageSettings:
    """The section `messages`; as variables FRONTROW_MESSAGES_VAPID_KEY and so on. Channels without settings are off."""

    vapid_key: str = setting("", secret=True, doc="the VAPID private key of web push, base64url")
    vapid_contact: str = setting("", example="mailto:ops@example.org", doc="whom push services may ask")
    sms_url: str = setting("", example="https://sms.example.org/send", doc="where SMS are posted")
    sms_key: str = setting("", secret=True, doc="the SMS provider's API key")


def open_channels(
    mail_url: str, settings: MessageSettings, book: MessageBook, outgoing: SafeHttpClient, clock: Clock
) -> list[Channel]:
    """Open every channel that has settings."""
    channels: list[Channel] = [open_mail(mail_url), InAppChannel(book, clock)]
    if settings.vapid_key:
        from frontrow.boxoffice.adapters.channels.push import PushChannel

        if not settings.vapid_contact:
            raise ConfigError("web push needs messages.vapid_contact, like mailto:ops@example.org", param="messages")
        channels.append(PushChannel(settings.vapid_key, settings.vapid_contact, outgoing, clock))
    if settings.sms_url:
        from frontrow.boxoffice.adapters.channels.sms import HttpSmsProvider, SmsChannel

        channels.append(SmsChannel(HttpSmsProvider(settings.sms_url, settings.sms_key)))
    return channels


def open_mail(url: str) -> Channel:
    """`smtp://` (STARTTLS if offered), `smtps://` (TLS from the start); anything else is a folder. `?from=` sets the
    sender."""
    try:
        parts = urlsplit(url)
        port = parts.port if parts.scheme in ("smtp", "smtps") else None
    except ValueError:  # its words may have a part of the password
        raise ConfigError(UNREADABLE, param="mail") from None
    sender = parse_qs(parts.query).get("from", [DEFAULT_SENDER])[0]
    if parts.scheme not in ("smtp", "smtps"):
        if "://" in url:
            raise ConfigError(
                f"mail {url.rpartition('@')[2][:60]!r} must be a folder, smtp://… or smtps://…", param="mail"
            )
        return FolderChannel(Path(url))
    others = [one for one in parts.query.split("&") if not one.startswith("from=")]
    if "@" in parts.path + parts.fragment + "".join(others):  # what stands before it is not the host
        raise ConfigError(UNREADABLE, param="mail")
    if not parts.hostname:
        raise ConfigError("mail: smtp:// needs a host, like smtp://mail.example.org:587?from=tickets@example.org")
    return SmtpChannel(
        parts.hostname,
        port or (465 if parts.scheme == "smtps" else 587),
        sender,
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        use_tls=parts.scheme == "smtps",
    )
