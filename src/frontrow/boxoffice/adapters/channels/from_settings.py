"""Opens the configured channels: mail by URL, push and SMS from the settings section `messages`, and the in-app page.

Mail is a folder for .eml files (the default), `smtp://user:password@host:587?from=tickets@example.org` or
`ses:eu-west-1?from=tickets@example.org`. SMS go through `twilio:ACCOUNT?from=+43…`, a provider of one's own
(`python:MODULE:FUNCTION`) or an address that takes one POST per SMS.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from frontrow.boxoffice.adapters.channels.email import FolderChannel, SmtpChannel
from frontrow.boxoffice.adapters.channels.in_app import InAppChannel
from frontrow.boxoffice.messages.deliveries import OpenAddresses
from frontrow.boxoffice.messages.ports.channels import Channel, ReportReader, SmsProvider
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.messages.sms_limits import SmsLimits
from frontrow.core.clock import Clock, SystemClock
from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import setting
from frontrow.limits import Quota

DEFAULT_SENDER = "tickets@localhost"
UNREADABLE = (
    "mail: this URL cannot be read; a port is a number, and / ? # [ ] @ in a password are written as "
    "%2F %3F %23 %5B %5D %40"
)
CALLBACKS: Final = "/v1/channels/"  # where providers report to, before their name
TWILIO_FORM: Final = "messages.sms_url is like twilio:AC0123…?from=+43664123456, or ?from=MG… for a messaging service"


@dataclass(frozen=True)
class MessageSettings:
    """The section `messages`; as variables FRONTROW_MESSAGES_VAPID_KEY and so on. Channels without settings are off."""

    vapid_key: str = setting("", secret=True, doc="the VAPID private key of web push, base64url")
    vapid_contact: str = setting("", example="mailto:ops@example.org", doc="whom push services may ask")
    sms_url: str = setting(
        "",
        example="twilio:AC0123456789abcdef0123456789abcdef?from=+436641234567",
        doc="through whom SMS go: twilio:ACCOUNT?from=NUMBER, python:MODULE:FUNCTION, or where they are posted",
    )
    sms_key: str = setting("", secret=True, doc="the SMS provider's API key; for Twilio the auth token")
    sms_countries: tuple[str, ...] = setting((), doc="calling codes that get SMS, like +43 and +1876; empty: all")
    sms_per_number: str = setting("10/hour", doc="how many SMS one number gets")
    sms_per_country: str = setting("600/hour", doc="how many SMS the numbers of one calling code get together")
    sms_api: str = setting(
        "", example="http://127.0.0.1:8090", doc="another server that speaks Twilio's API, for tests"
    )
    fcm_file: str = setting(
        "", example="/etc/frontrow/fcm.json", doc="the key file of the service account that pushes to apps"
    )
    fcm_api: str = setting("", example="http://127.0.0.1:8091", doc="another server that speaks FCM's API, for tests")
    aws_key_id: str = setting("", example="AKIAIOSFODNN7EXAMPLE", doc="the access key of mail by ses:")
    aws_secret: str = setting("", secret=True, doc="its secret")
    ses_api: str = setting("", example="http://127.0.0.1:8092", doc="another server that speaks SES's API, for tests")
    sns_topic: str = setting(
        "",
        example="arn:aws:sns:eu-west-1:123456789012:mail-reports",
        doc="the topic by which SES reports bounces and complaints",
    )

    def __post_init__(self) -> None:
        """Refuse what cannot be read."""
        for name in ("sms_per_number", "sms_per_country"):
            try:
                Quota.parse(getattr(self, name))
            except ValueError as error:
                raise ConfigError(f"messages.{name}: {error}", param=f"messages.{name}") from None
        for one in self.sms_countries:
            if not (one.startswith("+") and one[1:].isascii() and one[1:].isdigit()):
                raise ConfigError(f"messages.sms_countries: {one!r} is no calling code like +43", param="messages")


def open_channels(
    mail_url: str,
    settings: MessageSettings,
    book: MessageBook,
    outgoing: SafeHttpClient,
    clock: Clock,
    *,
    sms: SmsProvider | None = None,
    limits: SmsLimits | None = None,
) -> list[Channel]:
    """Open every channel that has settings. Addresses that are blocked get no mail and no SMS."""
    mail = open_mail(mail_url, settings, clock)
    channels: list[Channel] = [OpenAddresses(mail, book), InAppChannel(book, clock)]
    if settings.vapid_key or settings.fcm_file:
        channels.append(_open_push(settings, book, outgoing, clock))
    if sms is not None and limits is not None:
        from frontrow.boxoffice.adapters.channels.sms import SmsChannel

        channels.append(OpenAddresses(SmsChannel(sms, limits), book))
    return channels


def _open_push(settings: MessageSettings, book: MessageBook, outgoing: SafeHttpClient, clock: Clock) -> Channel:
    from frontrow.boxoffice.adapters.channels.fcm import API, FcmPusher, read_service_account
    from frontrow.boxoffice.adapters.channels.push import PushChannel, WebPush

    async def drop_device(fan: str, endpoint: str) -> None:
        await book.drop_device(fan, endpoint, clock())

    web, apps = None, None
    if settings.vapid_key:
        if not settings.vapid_contact:
            raise ConfigError("web push needs messages.vapid_contact, like mailto:ops@example.org", param="messages")
        web = WebPush(settings.vapid_key, settings.vapid_contact, outgoing, clock)
    if settings.fcm_file:
        try:
            text = Path(settings.fcm_file).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"messages.fcm_file cannot be read: {error.strerror}", param="messages.fcm_file"
            ) from None
        apps = FcmPusher(read_service_account(text), clock, api=settings.fcm_api or API)
    return PushChannel(web=web, apps=apps, drop_device=drop_device)


def open_sms_limits(settings: MessageSettings, store: str, clock: Clock | None) -> SmsLimits:
    """The caps of SMS, counted in this store."""
    return SmsLimits(
        store,
        clock,
        per_number=settings.sms_per_number,
        per_country=settings.sms_per_country,
        countries=settings.sms_countries,
    )


def open_sms(settings: MessageSettings, public_url: str) -> SmsProvider | None:
    """Through whom SMS go. None if they are off."""
    scheme, _, rest = settings.sms_url.partition(":")
    if not settings.sms_url:
        return None
    if scheme == "python":
        return _own_sms_provider(rest)
    if scheme == "twilio":
        from frontrow.boxoffice.adapters.channels.twilio import API, TwilioSms

        account, sender = _read_twilio(settings)
        callback = f"{public_url.rstrip('/')}{CALLBACKS}twilio" if public_url.startswith("https://") else ""
        return TwilioSms(account, settings.sms_key, sender, callback_url=callback, api=settings.sms_api or API)
    if scheme not in ("http", "https"):
        raise ConfigError(
            "messages.sms_url must be twilio:ACCOUNT?from=NUMBER, python:MODULE:FUNCTION or https://…",
            param="messages.sms_url",
        )
    from frontrow.boxoffice.adapters.channels.sms import HttpSmsProvider

    return HttpSmsProvider(settings.sms_url, settings.sms_key)


def _read_twilio(settings: MessageSettings) -> tuple[str, str]:
    """The account and the sender of `messages.sms_url`."""
    account, _, query = settings.sms_url.partition(":")[2].partition("?")
    sender = parse_qs(query.replace("+", "%2B")).get("from", [""])[0]
    if not account.startswith("AC") or not sender:
        raise ConfigError(TWILIO_FORM, param="messages.sms_url")
    if not settings.sms_key:
        raise ConfigError("messages.sms_key is not set: it is Twilio's auth token", param="messages.sms_key")
    return account, sender


def _own_sms_provider(place: str) -> SmsProvider:
    """What the function at `module:function` returns."""
    where, (module, _, function) = f"messages.sms_url python:{place}", place.partition(":")
    if not module or not function:
        raise ConfigError(f"{where} must be python:MODULE:FUNCTION", param="messages.sms_url")
    try:
        make: Any = getattr(importlib.import_module(module), function)
    except ImportError as error:
        raise ConfigError(
            f"{where} cannot be imported: {error}; is its folder on PYTHONPATH?", param="messages.sms_url"
        ) from None
    except AttributeError:
        raise ConfigError(f"{where}: {module} has no {function}", param="messages.sms_url") from None
    provider: SmsProvider = make()
    missing = [name for name in ("send", "aclose") if not hasattr(provider, name)]
    if missing:
        raise ConfigError(f"{where} returns a provider without {', '.join(missing)}", param="messages.sms_url")
    return provider


def open_report_readers(settings: MessageSettings) -> list[ReportReader]:
    """Who reads what the providers of the channels report."""
    readers: list[ReportReader] = []
    if settings.sms_url.startswith("twilio:"):
        from frontrow.boxoffice.adapters.channels.twilio import TwilioReader

        readers.append(TwilioReader(_read_twilio(settings)[0], settings.sms_key))
    if settings.sns_topic:
        from frontrow.boxoffice.adapters.channels.sns import SnsReader

        readers.append(SnsReader(settings.sns_topic))
    return readers


async def close_channel(channel: Channel) -> None:
    """Close the connections that a channel keeps, if it keeps any."""
    inner = channel.channel if isinstance(channel, OpenAddresses) else channel
    aclose = getattr(inner, "aclose", None)
    if aclose is not None:
        await aclose()


def open_checked_mail(url: str, settings: MessageSettings, book: MessageBook, clock: Clock) -> Channel:
    """Mail that goes to no blocked address."""
    return OpenAddresses(open_mail(url, settings, clock), book)


def open_mail(url: str, settings: MessageSettings | None = None, clock: Clock | None = None) -> Channel:
    """`smtp://` (STARTTLS if offered), `smtps://` (TLS from the start), `ses:REGION`; anything else is a folder.
    `?from=` sets the sender."""
    if url.startswith("ses:"):
        return _open_ses(url, settings or MessageSettings(), clock or SystemClock())
    try:
        parts = urlsplit(url)
        port = parts.port if parts.scheme in ("smtp", "smtps") else None
    except ValueError:  # its words may have a part of the password
        raise ConfigError(UNREADABLE, param="mail") from None
    sender = parse_qs(parts.query).get("from", [DEFAULT_SENDER])[0]
    if parts.scheme not in ("smtp", "smtps"):
        if "://" in url:
            raise ConfigError(
                f"mail {url.rpartition('@')[2][:60]!r} must be a folder, smtp://…, smtps://… or ses:REGION",
                param="mail",
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


def _open_ses(url: str, settings: MessageSettings, clock: Clock) -> Channel:
    from frontrow.boxoffice.adapters.channels.aws_signature import AwsKey
    from frontrow.boxoffice.adapters.channels.ses import SesChannel

    region, _, query = url.removeprefix("ses:").partition("?")
    given = parse_qs(query)
    sender = given.get("from", [""])[0]
    if not region or not region.replace("-", "").isalnum() or "@" not in sender:
        raise ConfigError("mail: ses: needs a region and a sender, like ses:eu-west-1?from=tickets@example.org")
    if not settings.aws_key_id or not settings.aws_secret:
        raise ConfigError("mail by ses: needs messages.aws_key_id and messages.aws_secret", param="messages.aws_key_id")
    key = AwsKey(settings.aws_key_id, settings.aws_secret)
    configuration_set = given.get("configuration_set", [""])[0]
    return SesChannel(region, key, sender, clock, configuration_set=configuration_set, api=settings.ses_api)
