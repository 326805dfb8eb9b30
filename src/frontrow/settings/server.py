"""The section `[server]`: where it listens, whom it trusts, and how much one person and one address may ask."""

from dataclasses import dataclass

from frontrow.core.settings_loader import setting


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """`[server]`: where it listens, what it stands behind, how much it takes on."""

    host: str = setting("127.0.0.1")
    port: int = setting(8000, low=0, high=65_535)
    workers: int = setting(1, low=1, high=64, doc="processes; more than one needs Redis and PostgreSQL")
    public_url: str = setting("", example="https://tickets.example.org", doc="how people reach this server")
    demo: bool = setting(False, doc="made-up money, a secret key made on the spot: never for a real sale")
    folder: str = setting("frontrow-data", doc="keys, and in the embedded mode everything else")
    hot_lane: bool = setting(True)
    plain_holds: bool = setting(False, doc="place holds by the slower code that specifies how; to compare the two")
    trusted_proxies: tuple[str, ...] = setting(
        (), example='["10.0.0.0/8"]', doc="whose X-Forwarded-For is believed; empty: nobody's, in a demo this machine's"
    )
    per_person: str = setting("10/second", doc="requests of one person")
    per_ip: str = setting("50/second", doc="requests of one address")
    x_ratelimit_headers: bool = setting(
        True, doc="tell what is left by X-RateLimit-Limit, -Remaining and -Reset too, beside RateLimit"
    )
    max_streams: int = setting(10_000, low=0, high=1_000_000, doc="live connections of this process")
    request_within_s: float = setting(30.0, low=0.1, high=600, doc="a request must have arrived by then")
    read_within_s: float = setting(20.0, low=0.1, high=600, doc="a client that reads none of its answers so long ends")
    heavy_processes: int = setting(
        1, low=0, high=16, doc="processes of each worker that draw PDFs and read plans; 0: a thread of its own"
    )
    heavy_memory_mb: int = setting(
        2_048, low=256, high=1_048_576, doc="memory of each such process; work that needs more is refused"
    )
    drain_s: float = setting(10.0, low=0.1, high=600, doc="how long a stopping server finishes what it has in hand")
    jobs_inside: bool = setting(True, doc="run the background jobs in the server; else `frontrow work` does")
    docs: bool = setting(True, doc="serve the API's document and its page")
    metrics: str = setting(
        "", example="127.0.0.1:8002", doc="where /metrics answers, and then nowhere else; empty: on server.port"
    )

    @property
    def address(self) -> str:
        """Where it listens, as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def site(self) -> str:
        """The address that links and cookies are made for."""
        return (self.public_url or self.address).rstrip("/")
