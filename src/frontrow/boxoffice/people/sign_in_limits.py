"""Limits on sign-in attempts: per account and per network address, with several windows at once.

The windows are the backoff. After five wrong passwords in a minute an account waits seconds, after twenty in an hour
minutes, after sixty in a day hours. Accounts that do not exist are counted the same. The count of a successful
attempt is refunded. `[people]` in the settings can change the numbers.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.attempt_limit import AttemptLimit
from frontrow.core.clock import Clock

PASSWORDS_PER_ACCOUNT: Final = ("5/minute", "20/hour", "60/day")
ATTEMPTS_PER_ADDRESS: Final = ("30/minute", "200/hour")
CODES_PER_MEMBER: Final = ("5/minute", "20/hour")
CODES_PER_LINK: Final = ("5/hour",)  # tries at the six digits of one mail, longer than the mail is valid
LINKS_PER_EMAIL: Final = ("3/minute", "10/hour")
LINKS_PER_ADDRESS: Final = ("100/minute", "1000/hour")  # a hall's network is one address


class SignInLimits:
    """One limit for each thing that can be guessed or misused. Each argument is a list of quotas."""

    def __init__(
        self,
        store: str,
        clock: Clock | None,
        *,
        account: Sequence[str] = PASSWORDS_PER_ACCOUNT,
        ip: Sequence[str] = ATTEMPTS_PER_ADDRESS,
        code: Sequence[str] = CODES_PER_MEMBER,
        link: Sequence[str] = LINKS_PER_EMAIL,
        link_ip: Sequence[str] = LINKS_PER_ADDRESS,
    ) -> None:
        self.account = AttemptLimit("account", account, store, clock)
        self.ip = AttemptLimit("ip", ip, store, clock)
        self.code = AttemptLimit("code", code, store, clock)
        self.link_code = AttemptLimit("link-code", CODES_PER_LINK, store, clock)
        self.link = AttemptLimit("link", link, store, clock)
        self.link_ip = AttemptLimit("link-ip", link_ip, store, clock)

    async def aclose(self) -> None:
        for limit in (self.account, self.ip, self.code, self.link_code, self.link, self.link_ip):
            await limit.aclose()
