"""The settings of `frontrow room serve`: table `[room]` of frontrow.toml, or `FRONTROW_ROOM_…`."""

from dataclasses import dataclass

from frontrow.boxoffice.events.model.room_rules import HUMAN_CHECKS, Lane, RoomRules
from frontrow.core.errors import ConfigError
from frontrow.core.settings_loader import setting
from frontrow.shared.cookie_headers import is_https
from frontrow.waitingroom.model.config import LaneRule, Phase, RoomConfig


@dataclass(frozen=True, slots=True)
class RoomSettings:
    """One or several rooms in one server. With one, its endpoints are also at the root."""

    events: tuple[str, ...] = setting(
        ("event",), doc="names of the rooms; more are made in the console", example='["aurora"]'
    )
    host: str = setting("127.0.0.1")
    port: int = setting(8008, low=0, high=65_535)
    workers: int = setting(1, low=1, high=64, doc="processes; more than one needs a Redis store")
    hot_lane: bool = setting(True)
    store: str = setting("memory://", example="redis://127.0.0.1:6379/0")
    shards: tuple[str, ...] = setting(
        (),
        secret=True,
        doc="spread each line over these Redis URLs, instead of one store; in `frontrow serve` each room is in one",
    )
    by_identity: bool = setting(False, doc="one place per person (a sorted set) instead of counters")
    folder: str = setting("frontrow-room", doc="keys, and the audit unless it has a place of its own")
    audit: str = setting("", doc="postgresql://… ; empty: a SQLite file in the folder")
    console: bool = setting(True, doc="the owner's pages under /console/, of a room served alone")
    console_over_http: bool = setting(
        False, doc="sign in without https from other machines, too; only where nobody else is on the network"
    )
    mail: str = setting(
        "",
        secret=True,
        example="smtp://user:password@mail.example.org:587?from=queue@example.org",
        doc="who waits may ask for a mail shortly before the turn; a folder or smtp://…; empty: nobody is asked",
    )
    organiser_key: str = setting("", secret=True, doc="bearer of the organiser's endpoints; empty: nobody")
    # the room as it is made first; afterwards the organiser changes it
    opening: str = setting("open", choices=("open", "prequeue"))
    capacity: int = setting(1_000, low=0)
    window_size: int = setting(100, low=1)
    interval_s: float = setting(1.0, low=0.001, high=3_600)
    rate_per_s: int = setting(100_000, low=0)
    burst: int = setting(100_000, low=1)
    catch_up_s: float = setting(
        1.0,
        low=0,
        high=3_600,
        doc="after a time without a leading server, the windows due in the last so many seconds are made up for",
    )
    min_slide: int = setting(
        1, low=1, doc="nobody is admitted while fewer people wait; the same as window_size: whole windows only"
    )
    active_windows: int = setting(
        0, low=0, high=64, doc="so many windows stay active; at least 2 are recommended; 0: by time, see grace_s"
    )
    grace_s: float = setting(300.0, low=1, high=86_400)
    pass_ttl_s: int = setting(900, low=1, high=86_400)
    pass_algorithm: str = setting(
        "RS256", choices=("RS256", "EdDSA"), doc="signature of the passes; EdDSA costs about a tenth of the CPU"
    )
    max_stay_s: int = setting(3_600, low=1)
    idle_s: int = setting(
        -1,
        low=-1,
        high=86_400,
        doc="a visit ends when nobody was heard for so long and others wait; 0: never; -1: 480 in `frontrow serve`",
    )
    leave_s: int = setting(10, low=1, high=3_600, doc="a visit ends so long after its page was closed")
    depth_cap: int = setting(0, low=0)
    max_p95_ms: int = setting(
        0, low=0, high=600_000, doc="the room holds the p95 latency that the shop reports under this; 0: does not"
    )
    max_error_percent: int = setting(5, low=1, high=100, doc="more errors than this count as too slow")
    min_capacity: int = setting(10, low=1, doc="the fewest people in the shop at once, however slow it is")
    lanes: tuple[str, ...] = setting(("general:1",), doc="name:weight", example='["general:1", "fans:3"]')
    codes_csv: str = setting("", doc="Verified-Fan codes of the first event: CSV with code,lane")
    # the entry
    human: str = setting("altcha", choices=HUMAN_CHECKS, doc="how a join proves that a person makes it; see human_when")
    human_site_key: str = setting("")
    human_secret: str = setting("", secret=True)
    human_hostnames: tuple[str, ...] = setting(())
    human_when_down: str = setting("refuse", choices=("refuse", "allow"))
    human_max_number: int = setting(50_000, low=100, high=10_000_000)
    human_when: str = setting(
        "busy",
        choices=("busy", "always"),
        doc="busy: only while more people come than are admitted; always: every join",
    )
    joins_without_scripts: str = setting(
        "3/minute", doc="joins of one address that need no proof of work, by the form of a browser without scripts"
    )
    suspect_networks: str = setting(
        "", doc="a file of networks, one per line, whose devices get harder work: data centres, proxies"
    )
    per_person: str = setting("10/second", doc="over all servers, with Redis; in memory each worker keeps to its part")
    per_ip: str = setting("50/second", doc="likewise")
    per_device: str = setting("20/minute", doc="likewise")
    x_ratelimit_headers: bool = setting(
        True, doc="tell what is left by X-RateLimit-Limit, -Remaining and -Reset too, beside RateLimit"
    )
    trusted_proxies: tuple[str, ...] = setting((), example='["10.0.0.0/8"]')
    # the page and the streams
    brand: str = setting("Frontrow")
    colours: tuple[str, ...] = setting(
        (), example='["brand:#a3123f/#ff8fa9"]', doc="your colours on every page, each name:light/dark"
    )
    title: str = setting("", doc="the event's name for people")
    shop_url: str = setting(
        "", example="https://shop.example.org/", doc="where to go with a pass; empty: back to the page that was wanted"
    )
    shops: tuple[str, ...] = setting(
        (),
        example='["https://shop.example.org"]',
        doc="origins of shops on other domains, whose connectors take visitors over (`frontrow room serve` only)",
    )
    public_url: str = setting(
        "",
        example="https://shop.example.org",
        doc="how people reach the room served alone; with https its cookies are Secure",
    )
    secure_cookies: bool = setting(False, doc="Secure cookies also without public_url")
    max_streams: int = setting(10_000, low=0, high=1_000_000, doc="of each room, divided among the server's workers")
    max_streams_per_address: int = setting(1_000, low=1, high=1_000_000, doc="of each worker; who gets none polls")
    max_connections_per_address: int = setting(1_000, low=1, high=1_000_000, doc="of each worker (IPv6: per /64)")
    uncapped: tuple[str, ...] = setting(
        ("127.0.0.0/8", "::1"), example='["127.0.0.0/8"]', doc="addresses and networks without these two caps"
    )
    heartbeat_s: float = setting(5.0, low=0.1, high=60)

    def __post_init__(self) -> None:
        if not self.events and not self.has_console:
            raise ConfigError('room.events must name at least one room, for example ["aurora"]', param="room.events")
        if self.embedded and self.workers > 1:
            raise ConfigError("room.workers above 1 needs a Redis store", param="room.store")
        if self.min_slide > self.window_size:
            raise ConfigError(
                f"room.min_slide ({self.min_slide}) must not be above room.window_size ({self.window_size})",
                param="room.min_slide",
            )

    @property
    def has_console(self) -> bool:
        """Whether owners have pages of their own. A queue over several stores is changed by its file and over HTTP."""
        return self.console and not self.shards

    @property
    def secure(self) -> bool:
        """Whether cookies are for https only."""
        return self.secure_cookies or is_https(self.public_url)

    @property
    def embedded(self) -> bool:
        """Everything in this process and its audit file."""
        return self.store == "memory://" and not self.shards

    @property
    def limit_store(self) -> str:
        """Where all servers count the limits of addresses and people together."""
        return self.shards[0] if self.shards else self.store

    @property
    def rooms(self) -> tuple[str, ...]:
        """The rooms there are: the events, or the shards of each."""
        if not self.shards:
            return self.events
        return tuple(f"{event}.{number}" for event in self.events for number in range(len(self.shards)))

    @property
    def root_event(self) -> str:
        """The event that is also served at the root: the only one."""
        return self.events[0] if len(self.events) == 1 else ""

    @property
    def phase(self) -> Phase:
        return Phase(self.opening)

    def config(self) -> RoomConfig:
        """The room as it is made first."""
        return RoomConfig(
            capacity=self.capacity,
            window_size=self.window_size,
            interval_us=round(self.interval_s * 1e6),
            rate_per_s=self.rate_per_s,
            burst=self.burst,
            catch_up_us=round(self.catch_up_s * 1e6),
            min_slide=self.min_slide,
            active_windows=self.active_windows,
            grace_us=round(self.grace_s * 1e6),
            pass_ttl_s=self.pass_ttl_s,
            max_stay_s=max(self.max_stay_s, self.pass_ttl_s),
            idle_s=max(0, self.idle_s),
            leave_s=self.leave_s,
            depth_cap=self.depth_cap,
            max_p95_ms=self.max_p95_ms,
            max_error_percent=self.max_error_percent,
            min_capacity=self.min_capacity,
            lanes=tuple(_lane(text) for text in self.lanes),
        )

    def rules(self) -> RoomRules:
        """What an event's room is like where its organiser left it open."""
        lanes = tuple(Lane(lane.name, lane.weight) for lane in self.config().lanes)
        return RoomRules(lanes, self.depth_cap, self.human, self.by_identity)

    @property
    def human_checks(self) -> tuple[str, ...]:
        """The human checks organisers can choose: the provider's only where its keys are set."""
        return tuple(dict.fromkeys(("none", "altcha", self.human)))


def _lane(text: str) -> LaneRule:
    name, _, weight = text.partition(":")
    if not (weight or "1").isdecimal():
        raise ConfigError(f"room.lanes: {text!r} is not like fans:3", param="room.lanes")
    return LaneRule(name, int(weight or 1))
