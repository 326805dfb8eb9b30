"""`[people]`: what a password costs, how often somebody may try, how long one-time links live."""

from dataclasses import dataclass

from frontrow.core.settings_loader import setting


@dataclass(frozen=True, slots=True)
class PeopleSettings:
    """As variables FRONTROW_PEOPLE_ARGON2_MEMORY_KIB and so on. The defaults are RFC 9106's second choice."""

    argon2_time_cost: int = setting(3, low=1, high=20)
    argon2_memory_kib: int = setting(65_536, low=8, high=4_194_304)
    argon2_lanes: int = setting(4, low=1, high=16)
    argon2_at_once: int = setting(2, low=1, high=64, doc="passwords checked at the same time, each with its memory")
    account_tries: tuple[str, ...] = setting(("5/minute", "20/hour", "60/day"), doc="wrong passwords of one account")
    ip_tries: tuple[str, ...] = setting(("30/minute", "200/hour"), doc="attempts from one address, over all accounts")
    code_tries: tuple[str, ...] = setting(("5/minute", "20/hour"), doc="wrong second factors of one member")
    link_asks: tuple[str, ...] = setting(("3/minute", "10/hour"), doc="magic links to one address")
    link_asks_per_ip: tuple[str, ...] = setting(("100/minute", "1000/hour"), doc="a hall's network is one address")
    link_life_s: int = setting(900, low=60, high=3600, doc="how long a magic link works")
    invitation_life_s: int = setting(72 * 3600, low=600, high=30 * 86_400)
    issuer: str = setting("Frontrow", doc="the name authenticator apps show")
