"""The settings of the platform: frozen sections of `frontrow.toml`, each also as `FRONTROW_<SECTION>_<FIELD>`.

Nothing here opens anything. Whatever is missing or cannot go together stops the start with one sentence that names the
setting. Secrets never show in `repr`.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings
from frontrow.boxoffice.adapters.ledger.ledger_url import is_postgres
from frontrow.boxoffice.events.model.room_rules import MAX_LANES
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.core.errors import ConfigError
from frontrow.core.redis_url import mask_password, scheme_of
from frontrow.core.settings_loader import load, named, read_tables, without_services
from frontrow.limits import Quota
from frontrow.limits.config import LimitsFile, read_limits
from frontrow.limits.http.client_address import ClientAddress, Networks
from frontrow.settings.colours import theme_css
from frontrow.settings.deployment import (
    AdyenSettings,
    BusSettings,
    Deployment,
    LedgerSettings,
    MailSettings,
    PaymentsSettings,
    RedisSettings,
    SecretSettings,
    StripeSettings,
)
from frontrow.settings.overload import OverloadSettings
from frontrow.settings.room import RoomSettings
from frontrow.settings.server import ServerSettings
from frontrow.settings.traces import TraceSettings
from frontrow.settings.work import WorkSettings, health_address
from frontrow.shared.listening import read_address

MIN_SECRET_CHARS = 32
OWN_PROVIDER = "python:MODULE:FUNCTION, like python:our_payments:open_provider"
NO_RULES = "needs rules: add [[limits.rules]] with a name and a quota to frontrow.toml"
# fields of [limits] that only apps with the limiter by itself use -> what the platform uses instead
LIMITER_ONLY = {
    "store": "the platform counts in redis.url",
    "trusted_proxies": "set server.trusted_proxies",
    "ipv6_prefix": "an IPv6 client is its /64",
    "identify": "the platform knows ip, user, api_key and organiser",
    "count_preflights": "the platform answers OPTIONS before it counts",
    "max_body_bytes": "the platform's rules do not read bodies",
    "dialect": "the platform tells limits by draft-11, and by X-RateLimit-… with server.x_ratelimit_headers",
    "reset": "the platform tells X-RateLimit-Reset as a time stamp",
    "log_per_second": "the platform logs five refusals per second",
    "record_refusals": "see frontrow_rate_limited_total",
}
# fields of [room] that only `frontrow room serve` uses -> what the platform uses instead
ROOM_SERVE_ONLY = {
    "events": "every published event has a room of its own",
    "host": "set server.host",
    "port": "set server.port",
    "workers": "set server.workers",
    "hot_lane": "set server.hot_lane",
    "store": "set redis.url",
    "folder": "set server.folder",
    "audit": "the platform keeps it in ledger.url",
    "console": "organisers set up rooms with their events",
    "console_over_http": "organisers set up rooms with their events",
    "mail": "set mail.url",
    "opening": "a room opens when its event's sale does",
    "codes_csv": "import codes on the event's page or with POST /v1/organiser/events/{event}/codes",
    "per_person": "set server.per_person",
    "per_ip": "set server.per_ip",
    "x_ratelimit_headers": "set server.x_ratelimit_headers",
    "trusted_proxies": "set server.trusted_proxies",
    "public_url": "set server.public_url",
    "shops": "the platform is the shop behind its rooms",
    "title": "a room is titled by its event's name",
    "max_streams": "set server.max_streams",
    "max_streams_per_address": "set overload.max_streams_per_address",
    "max_connections_per_address": "set overload.max_connections_per_address",
    "uncapped": "set overload.uncapped",
}
QUOTAS_OF_PEOPLE = ("account_tries", "ip_tries", "code_tries", "link_asks", "link_asks_per_ip")
LOOPBACK = ("127.0.0.0/8", "::1")
# what commands read besides the settings, and what the suite of tests reads
OTHER_VARIABLES = {
    "FRONTROW_TICKET_KEYS",
    "FRONTROW_CLAIMS_URL",
    "FRONTROW_DOCTOR_KEY",
    "FRONTROW_PG_BIN",
    "FRONTROW_PRETIX_PYTHON",
    "FRONTROW_STORM_ROUNDS",
    "FRONTROW_STORM_TOKEN",
    "FRONTROW_SCHEMATHESIS_EXAMPLES",
    "FRONTROW_TEST_REDIS_URL",
    "FRONTROW_TEST_POSTGRES_URL",
}


@dataclass(frozen=True, slots=True)
class PlatformSettings:
    """Everything `open_platform` needs to know."""

    server: ServerSettings = field(default_factory=ServerSettings)
    secret: SecretSettings = field(default_factory=SecretSettings)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    redis: RedisSettings = field(default_factory=RedisSettings)
    bus: BusSettings = field(default_factory=BusSettings)
    mail: MailSettings = field(default_factory=MailSettings)
    stripe: StripeSettings = field(default_factory=StripeSettings)
    payments: PaymentsSettings = field(default_factory=PaymentsSettings)
    adyen: AdyenSettings = field(default_factory=AdyenSettings)
    messages: MessageSettings = field(default_factory=MessageSettings)
    room: RoomSettings = field(default_factory=RoomSettings)
    overload: OverloadSettings = field(default_factory=OverloadSettings)
    traces: TraceSettings = field(default_factory=TraceSettings)
    people: PeopleSettings = field(default_factory=PeopleSettings)
    work: WorkSettings = field(default_factory=WorkSettings)
    limits: LimitsFile | None = None  # the rules of the API, beside server.per_person and server.per_ip

    def __post_init__(self) -> None:
        """Refuse what cannot be right together."""
        self._check_forms()
        self._check_room()
        demo = self.server.demo
        if not self.secret.key and not demo:
            raise ConfigError(
                "secret.key is not set; make one with `openssl rand -base64 48` and set FRONTROW_SECRET_KEY",
                param="secret.key",
            )
        if self.secret.key and len(self.secret.key) < MIN_SECRET_CHARS:
            raise ConfigError(f"secret.key must have at least {MIN_SECRET_CHARS} characters", param="secret.key")
        self._check_payments()
        self._check_adyen()
        self._check_stripe()
        if self.server.workers > 1 and not self.shared:
            raise ConfigError(
                "server.workers above 1 needs redis.url and a PostgreSQL ledger.url", param="server.workers"
            )
        if bool(self.redis.url) != is_postgres(self.ledger_url):
            raise ConfigError(
                "redis.url and a PostgreSQL ledger.url go together: set both, or neither (embedded)", param="redis.url"
            )

        if self.shared and not self.secret.key:
            raise ConfigError(
                "secret.key is not set; servers on shared stores cannot each make one up", param="secret.key"
            )

    def _check_payments(self) -> None:
        """One provider takes new payments: your own, or Stripe, or made-up money. Others may stay open beside it."""
        url, also = self.payments.url, self.payments.also
        self._check_provider(url, "payments.url")
        for one in also:
            self._check_provider(one or "an empty name", "payments.also")
        if url.startswith("python:") and self.stripe.key and "stripe:" not in also:
            raise ConfigError(
                "payments.url and stripe.key are both set; only one can take the money. If Stripe is to finish what it "
                'began, set payments.also = ["stripe:"]',
                param="payments.url",
            )
        if not url and self.stripe.key and self.adyen.key and "adyen:" not in also:
            raise ConfigError(
                "stripe.key and adyen.key are both set; say with payments.url which of them takes new payments, and "
                "name the other in payments.also if it is to finish what it began",
                param="payments.url",
            )
        if len({self.deployment.payments_url, *also}) <= len(also):
            raise ConfigError("payments.also names a provider twice", param="payments.also")

    def _check_provider(self, url: str, where: str) -> None:
        scheme = url.partition(":")[0]
        if url and scheme not in ("python", "stripe", "adyen", "simulated"):
            raise ConfigError(f"{where} must be {OWN_PROVIDER}, not {mask_password(url)!r}", param=where)
        if scheme == "stripe" and not self.stripe.key:
            raise ConfigError(f"{where} is stripe:, and stripe.key is not set", param="stripe.key")
        if scheme == "adyen" and not self.adyen.key:
            raise ConfigError(f"{where} is adyen:, and adyen.key is not set", param="adyen.key")
        if scheme == "simulated" and not self.server.demo:
            raise ConfigError(f"{where} is simulated:; only server.demo takes made-up money", param=where)

    def _check_stripe(self) -> None:
        """All three of Stripe's settings, or none of them and made-up money."""
        stripe = self.stripe
        if not stripe.key and (stripe.publishable_key or stripe.webhook_secret):
            given = "stripe.publishable_key" if stripe.publishable_key else "stripe.webhook_secret"
            raise ConfigError(
                f"{given} is set without stripe.key; set FRONTROW_STRIPE_KEY too, or neither", param="stripe.key"
            )
        if not stripe.key and not self.adyen.key and not self.server.demo and not self.payments.url:
            raise ConfigError("stripe.key is not set; only server.demo takes made-up money", param="stripe.key")
        if stripe.key and not stripe.webhook_secret:
            raise ConfigError(
                "stripe.webhook_secret is not set; notices could be forged", param="stripe.webhook_secret"
            )
        if stripe.key and not stripe.publishable_key:
            raise ConfigError(
                "stripe.publishable_key is not set; the checkout page needs it for Stripe's card form "
                "(FRONTROW_STRIPE_PUBLISHABLE_KEY, pk_… beside your secret key in Stripe's dashboard)",
                param="stripe.publishable_key",
            )
        if stripe.publishable_key.startswith(("sk_", "rk_")):
            raise ConfigError(
                "stripe.publishable_key is a secret key, and every visitor would see it; it must start with pk_",
                param="stripe.publishable_key",
            )
        modes = {_stripe_mode(stripe.key), _stripe_mode(stripe.publishable_key)}
        if modes == {"live", "test"}:
            raise ConfigError(
                "stripe.publishable_key and stripe.key are of different modes, and no payment would succeed; "
                "take both from the live mode or both from the test mode",
                param="stripe.publishable_key",
            )

    def _check_adyen(self) -> None:
        """All four that Adyen needs, or none; the client key only beside them."""
        if any(self.adyen.access):
            self.adyen.access.check()

    def _check_room(self) -> None:
        """Refuse settings of the room that the platform would not use."""
        if self.room.shards and not self.shared:
            raise ConfigError("room.shards needs redis.url and a PostgreSQL ledger.url", param="room.shards")
        for one in fields(RoomSettings):
            if one.name in ROOM_SERVE_ONLY and getattr(self.room, one.name) != one.default:
                raise _unused(f"room.{one.name}")
        if len(self.room.lanes) > MAX_LANES:
            raise ConfigError(f"room.lanes: an event has at most {MAX_LANES} lanes", param="room.lanes")
        by_provider = self.room.human not in ("none", "altcha")
        if by_provider and not (self.room.human_site_key and self.room.human_secret):
            raise ConfigError(
                f"room.human is {self.room.human}, which needs room.human_site_key and room.human_secret",
                param="room.human",
            )

    def _check_forms(self) -> None:
        """Each by itself: quotas, networks and addresses are what they must be."""
        server, people = self.server, self.people
        quotas = {
            "server.per_person": (server.per_person,),
            "server.per_ip": (server.per_ip,),
            "room.per_device": (self.room.per_device,),
            "room.joins_without_scripts": (self.room.joins_without_scripts,),
            **{f"people.{name}": getattr(people, name) for name in QUOTAS_OF_PEOPLE},
        }
        for where, texts in quotas.items():
            with named(where):
                for text in texts:
                    Quota.parse(text)
        with named("server.trusted_proxies"):
            ClientAddress(server.trusted_proxies)
        with named("overload.uncapped"):
            Networks(self.overload.uncapped, param="overload.uncapped")
        with named("room.lanes"):
            self.room.config()
        theme_css(self.room.colours)
        with named("ledger.url"):
            is_postgres(self.ledger_url)
        self._check_replica()
        self.bus.check()
        if self.redis.url:
            with named("redis.url"):
                scheme_of(self.redis.url)
        with named("room.shards"):
            for url in self.room.shards:
                scheme_of(url)
        if self.work.health:
            health_address(self.work.health)
        if server.metrics:
            read_address(server.metrics, "server.metrics", "127.0.0.1:8002")
        if "\0" in server.folder:
            raise ConfigError("server.folder must be the name of a folder", param="server.folder")

    def _check_replica(self) -> None:
        """Only PostgreSQL has replicas."""
        if not self.ledger.read_url:
            return
        with named("ledger.read_url"):
            if not is_postgres(self.ledger.read_url):
                raise ConfigError("a replica is a PostgreSQL server, like postgresql://frontrow@replica/frontrow")
            if not is_postgres(self.ledger_url):
                raise ConfigError("a SQLite ledger has no replicas; it needs a PostgreSQL ledger.url")

    @property
    def deployment(self) -> Deployment:
        """Where things are, as the other commands see it."""
        return Deployment(
            self.server,
            self.secret,
            self.ledger,
            self.redis,
            self.bus,
            self.mail,
            self.stripe,
            self.payments,
            self.adyen,
        )

    @property
    def shared(self) -> bool:
        """Whether several servers may stand on the same stores."""
        return self.deployment.shared

    @property
    def folder(self) -> Path:
        return self.deployment.folder

    @property
    def ledger_url(self) -> str:
        return self.deployment.ledger_url

    @property
    def bus_url(self) -> str:
        return self.deployment.bus_url

    @property
    def mail_url(self) -> str:
        return self.deployment.mail_url

    @property
    def public_url(self) -> str:
        return self.server.site

    def with_port(self, port: int) -> "PlatformSettings":
        """The same with the port that the system chose, so that links in mails lead to it."""
        return replace(self, server=replace(self.server, port=port))


_SECTIONS: dict[str, type[Any]] = {
    "server": ServerSettings,
    "secret": SecretSettings,
    "ledger": LedgerSettings,
    "redis": RedisSettings,
    "bus": BusSettings,
    "mail": MailSettings,
    "stripe": StripeSettings,
    "payments": PaymentsSettings,
    "adyen": AdyenSettings,
    "messages": MessageSettings,
    "room": RoomSettings,
    "people": PeopleSettings,
    "overload": OverloadSettings,
    "traces": TraceSettings,
    "work": WorkSettings,
}


def read_settings(
    path: str | Path | None = None, env: Mapping[str, str] | None = None, **server: Any
) -> PlatformSettings:
    """The file (if any), the environment, then what the command line says about the server."""
    environment = without_services(os.environ if env is None else env)
    tables = read_tables(path)
    limits = _read_limits(tables, path or "frontrow.toml", environment)
    unknown = sorted(set(tables) - set(_SECTIONS) - {"limits", "rehearsal"})  # `frontrow rehearse` reads that one
    if unknown:
        raise ConfigError(f"[{unknown[0]}] is not a section; there are {', '.join(_SECTIONS)}", param=unknown[0])
    _check_names(environment)
    _check_used(tables.get("room", {}), environment)
    sections = {name: load(kind, name, tables=tables, env=environment) for name, kind in _SECTIONS.items()}
    given = {name: value for name, value in server.items() if value is not None}
    sections["server"] = _trust_own_machine(replace(sections["server"], **given))
    return PlatformSettings(**sections, limits=limits)


def _trust_own_machine(server: ServerSettings) -> ServerSettings:
    """A demo believes the addresses that its own machine reports: so the fans of a storm are counted one by one."""
    return replace(server, trusted_proxies=LOOPBACK) if server.demo and not server.trusted_proxies else server


def _read_limits(tables: Mapping[str, Any], path: str | Path, environment: Mapping[str, str]) -> LimitsFile | None:
    """The rules of the API in `[limits]`, if there are any."""
    variables = sorted(name for name in environment if name.startswith("FRONTROW_LIMITS_"))
    table = tables.get("limits", {})
    for name, instead in LIMITER_ONLY.items():
        given = f"FRONTROW_LIMITS_{name}".upper()
        where = given if given in variables else f"limits.{name}"
        if given in variables or (isinstance(table, Mapping) and name in table):
            message = f"{where} is only for apps that use the limiter by itself; here {instead}"
            raise ConfigError(message, param=where)
    if "limits" not in tables:
        if variables:
            raise ConfigError(f"{variables[0]} {NO_RULES}", param=variables[0])
        return None
    return read_limits(tables, path, environment, defaults={"on_missing": "ip"})


def _stripe_mode(key: str) -> str:
    """`live` or `test`, as the key says (`sk_live_…`); empty if it does not."""
    found = re.match(r"(?:sk|rk|pk)_(live|test)_", key)
    return found[1] if found else ""


def _unused(where: str) -> ConfigError:
    """Says that a setting would have no effect here, and what has."""
    name = where.removeprefix("FRONTROW_ROOM_").removeprefix("room.").lower()
    return ConfigError(f"{where} is only for `frontrow room serve`; here {ROOM_SERVE_ONLY[name]}", param=where)


def _check_used(room: Any, environment: Mapping[str, str]) -> None:
    """Refuse what is given and would not be used, even if it is what would be used anyway."""
    for name in ROOM_SERVE_ONLY:
        variable = f"FRONTROW_ROOM_{name}".upper()
        if variable in environment:
            raise _unused(variable)
        if isinstance(room, Mapping) and name in room:
            raise _unused(f"room.{name}")


def _check_words(environment: Mapping[str, str]) -> None:
    """Refuse `FRONTROW_PORT` and `FRONTROW_SECRET`: a field without its section, and the other way round."""
    known = {(section, field.name) for section, kind in _SECTIONS.items() for field in fields(kind)}
    for variable in sorted(environment):
        word = variable.removeprefix("FRONTROW_").lower()
        meant = [f"FRONTROW_{section}_{name}".upper() for section, name in sorted(known) if word in (section, name)]
        if variable.startswith("FRONTROW_") and meant:
            raise ConfigError(f"{variable} is not a setting; there is {', '.join(meant)}", param=variable)


def _check_names(environment: Mapping[str, str]) -> None:
    """A variable that is nearly a setting, or of a section that does not exist, is a mistake, not nothing. Those of a
    section that exists are checked when it is loaded."""
    _check_words(environment)
    for variable in sorted(environment):
        found = re.match(r"FRONTROW_([A-Z0-9]+)_", variable)
        if found is None or found[1].lower() in (*_SECTIONS, "limits", "rehearsal"):
            continue
        if variable not in OTHER_VARIABLES:
            known = ", ".join(_SECTIONS)
            raise ConfigError(f"{variable} is not a setting; the sections are {known}", param=variable)
