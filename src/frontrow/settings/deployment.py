"""The sections of `frontrow.toml` that say where a deployment's things are, and one answer to "where" for all commands.

`frontrow serve` needs all settings; a command that only looks into the ledger needs only these, and none of them is
required. So both read the same file, the same variables and the same folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from frontrow.boxoffice.adapters.bus.kafka_access import (
    EXAMPLE,
    MECHANISMS,
    PROTOCOLS,
    KafkaAccess,
    read_kafka_url,
)
from frontrow.boxoffice.adapters.payments.adyen_access import EXAMPLE as ADYEN_EXAMPLE
from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import load, read_tables, setting
from frontrow.settings.server import ServerSettings

LEDGER_FILE = "frontrow.db"  # in the server's folder, where no ledger.url is set


@dataclass(frozen=True, slots=True)
class SecretSettings:
    """`[secret]`: what capabilities and sessions are signed with."""

    key: str = setting("", secret=True, example="32 or more random characters")


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """`[ledger]`: the store of record. URLs may hold passwords, so none shows."""

    url: str = setting(
        "", secret=True, example="postgresql://frontrow@db/frontrow", doc="empty: a SQLite file in the folder"
    )
    direct_url: str = setting(
        "",
        secret=True,
        example="postgresql://frontrow@db/frontrow",
        doc="PostgreSQL itself, for migrations and backups, where url leads to PgBouncer",
    )
    read_url: str = setting(
        "",
        secret=True,
        example="postgresql://frontrow@replica1,replica2/frontrow",
        doc="read replicas for lists, figures, reports and exports; the first good one is used",
    )
    read_max_lag_s: float = setting(
        10.0, low=3, high=3_600, doc="a replica further behind is not read; the primary answers"
    )


@dataclass(frozen=True, slots=True)
class RedisSettings:
    url: str = setting(
        "", secret=True, example="redis://127.0.0.1:6379/0", doc="empty: claims, places and limits in memory"
    )


@dataclass(frozen=True, slots=True)
class BusSettings:
    """`[bus]`: what carries facts to their consumers. All but the first are for Kafka."""

    url: str = setting(
        "",
        secret=True,
        example="kafka://broker1:9092,broker2:9092/facts",
        doc="empty: memory, or Redis Streams where there is one",
    )
    security_protocol: str = setting("plaintext", choices=PROTOCOLS, doc="of the brokers' listener")
    sasl_mechanism: str = setting("SCRAM-SHA-512", choices=MECHANISMS)
    user: str = setting("", doc="with sasl_ssl or sasl_plaintext")
    password: str = setting("", secret=True)
    ca_file: str = setting(
        "", example="/etc/kafka/ca.pem", doc="who signed the brokers' certificates; empty: the system's"
    )
    cert_file: str = setting("", doc="our own certificate, where brokers ask for one")
    key_file: str = setting("", doc="its key")
    partitions: int = setting(
        0, low=0, high=10_000, doc="of a topic that we make; 0: as the brokers do. An event is in one partition"
    )

    @property
    def access(self) -> KafkaAccess:
        """Everything that Kafka's client needs besides the address."""
        return KafkaAccess(
            self.security_protocol,
            self.sasl_mechanism,
            self.user,
            self.password,
            self.ca_file,
            self.cert_file,
            self.key_file,
            self.partitions,
        )

    def check(self) -> None:
        """Refuse what cannot work together."""
        if self.url.startswith("kafka:"):
            read_kafka_url(self.url)
            self.access.check()
        elif self.access != KafkaAccess():
            set_up = fields(KafkaAccess)
            name = next(one.name for one in set_up if getattr(self, one.name) != one.default)
            raise ConfigError(f"bus.{name} is for Kafka; set bus.url to one, like {EXAMPLE}", param=f"bus.{name}")


@dataclass(frozen=True, slots=True)
class MailSettings:
    url: str = setting(
        "", secret=True, example="smtp://mail:587?from=tickets@example.org", doc="empty: .eml files in the folder"
    )


@dataclass(frozen=True, slots=True)
class StripeSettings:
    """`[stripe]`: without a key the provider is simulated, which only the demo may do."""

    key: str = setting("", secret=True, example="sk_live_…")
    webhook_secret: str = setting("", secret=True, example="whsec_…")
    publishable_key: str = setting(
        "", example="pk_live_…", doc="for Stripe's card form on the checkout page; needed with a key"
    )
    api: str = setting("", doc="another address than Stripe's, for tests")
    connect_secret: str = setting(
        "",
        secret=True,
        example="whsec_…",
        doc="of the endpoint for connected accounts, where organisers have their own",
    )


@dataclass(frozen=True, slots=True)
class AdyenSettings:
    """`[adyen]`: all of the first four, or none."""

    api: str = setting("", example=ADYEN_EXAMPLE, doc="Adyen's address for the account, with the version")
    key: str = setting("", secret=True, example="AQE…")
    merchant_account: str = setting("", example="YourCompanyECOM")
    hmac_key: str = setting("", secret=True, example="64 hexadecimal digits", doc="of the standard webhook")
    client_key: str = setting(
        "",
        example="live_…",
        doc="for Adyen's form on the checkout page, whose addresses follow from api; empty: fans pay on Adyen's page",
    )

    @property
    def access(self) -> AdyenAccess:
        return AdyenAccess(self.api, self.key, self.merchant_account, self.hmac_key, self.client_key)


@dataclass(frozen=True, slots=True)
class PaymentsSettings:
    """`[payments]`: who takes the money, unless it is Stripe (`[stripe]`), Adyen (`[adyen]`) or the demo."""

    url: str = setting(
        "",
        example="python:our_payments:open_provider",
        doc="a function of your own that returns a payment provider, stripe: or adyen:; empty: the one whose key is "
        "set, or the demo's made-up money",
    )
    also: tuple[str, ...] = setting(
        (),
        example='["stripe:"]',
        doc="other providers that stay open: they finish and refund what they began, and hear their notices",
    )
    methods: tuple[str, ...] = setting(
        (),
        example='["card", "apple_pay", "google_pay", "ideal", "sepa_debit"]',
        doc="what fans can pay with, in the order in which it is offered; each must be switched on at the provider; "
        "empty: with Stripe cards and wallets, else all that the provider has",
    )
    max_in_flight: int = setting(
        5_000, low=1, high=1_000_000, doc="calls to the provider at once, over all servers; more are put off"
    )


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where the folder, the stores, the mails and the money of a deployment are."""

    server: ServerSettings = field(default_factory=ServerSettings)
    secret: SecretSettings = field(default_factory=SecretSettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    redis: RedisSettings = field(default_factory=RedisSettings)
    bus: BusSettings = field(default_factory=BusSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    stripe: StripeSettings = field(default_factory=StripeSettings)
    payments: PaymentsSettings = field(default_factory=PaymentsSettings)
    adyen: AdyenSettings = field(default_factory=AdyenSettings)

    @property
    def shared(self) -> bool:
        """Whether several servers may stand on the same stores."""
        return bool(self.redis.url)

    @property
    def folder(self) -> Path:
        return Path(self.server.folder)

    @property
    def ledger_url(self) -> str:
        file = self.folder / LEDGER_FILE
        return self.ledger.url or (f"sqlite:///{file}" if file.is_absolute() else f"sqlite:///./{file}")

    @property
    def direct_ledger_url(self) -> str:
        """The ledger without a pooler in between."""
        return self.ledger.direct_url or self.ledger_url

    @property
    def bus_url(self) -> str:
        return self.bus.url or self.redis.url or "memory:"

    @property
    def mail_url(self) -> str:
        return self.mail.url or str(self.folder / "outbox")

    @property
    def payments_url(self) -> str:
        """Your own provider's, Stripe's, Adyen's, or that of the demo's made-up money."""
        given = "stripe:" if self.stripe.key else "adyen:" if self.adyen.key else ""
        return self.payments.url or given or self.demo_payments_url

    @property
    def demo_payments_url(self) -> str:
        return f"simulated:{self.payments_journal}"

    @property
    def payments_journal(self) -> Path:
        return self.folder / "payments.jsonl"

    @property
    def ticket_keys(self) -> Path:
        """The ring of ticket keys of an embedded server. On shared stores the ring is in the ledger."""
        return self.folder / "ticket-keys.json"

    @property
    def public_url(self) -> str:
        return self.server.site


def read_deployment(
    path: str | Path | None = None, env: Mapping[str, str] | None = None, *, ledger: str | None = None, **server: Any
) -> Deployment:
    """The file (if any), the environment, then what the command line says."""
    tables = read_tables(path)
    kinds: dict[str, Any] = {one.name: one.default_factory for one in fields(Deployment)}
    sections = {name: load(kind, name, tables=tables, env=env) for name, kind in kinds.items()}
    if ledger and ledger != sections["ledger"].url:
        sections["ledger"] = LedgerSettings(ledger)
    given = {name: value for name, value in server.items() if value is not None}
    sections["server"] = replace(sections["server"], **given)
    return Deployment(**sections)
