"""The section `[people]`: the cost of passwords, the limits of sign-in attempts, the life of one-time links."""

from dataclasses import dataclass

from frontrow.boxoffice.people import sign_in_limits
from frontrow.core.settings_loader import setting


@dataclass(frozen=True, slots=True)
class PeopleSettings:
    """As variables FRONTROW_PEOPLE_ARGON2_MEMORY_KIB and so on. The argon2 defaults are RFC 9106's second choice."""

    argon2_time_cost: int = setting(3, low=1, high=20)
    argon2_memory_kib: int = setting(65_536, low=8, high=4_194_304)
    argon2_lanes: int = setting(4, low=1, high=16)
    argon2_at_once: int = setting(2, low=1, high=64, doc="passwords checked at the same time, each with its memory")
    account_tries: tuple[str, ...] = setting(sign_in_limits.PASSWORDS_PER_ACCOUNT, doc="wrong passwords of one account")
    ip_tries: tuple[str, ...] = setting(
        sign_in_limits.ATTEMPTS_PER_ADDRESS, doc="attempts from one address, over all accounts"
    )
    code_tries: tuple[str, ...] = setting(sign_in_limits.CODES_PER_MEMBER, doc="wrong second factors of one member")
    link_asks: tuple[str, ...] = setting(sign_in_limits.LINKS_PER_EMAIL, doc="magic links to one address")
    link_asks_per_ip: tuple[str, ...] = setting(sign_in_limits.LINKS_PER_ADDRESS, doc="a hall's network is one address")
    link_life_s: int = setting(900, low=60, high=3600, doc="how long a magic link works")
    invitation_life_s: int = setting(72 * 3600, low=600, high=30 * 86_400)
    issuer: str = setting("Frontrow", doc="the name authenticator apps show")
