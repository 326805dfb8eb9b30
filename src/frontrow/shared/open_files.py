"""How many files this process may have open: each connection is one.

A system starts a process with a low limit, often 1,024, and says how far the process may raise it by itself.
"""

import logging
import resource
from typing import Final

SPARE: Final = 1_000  # for everything that is no connection: stores, the ledger, logs, mails
UNLIMITED: Final = 2**31

log = logging.getLogger("frontrow.serve")


def read_most_files() -> int:
    """How many open files this process may allow itself."""
    return _count(resource.getrlimit(resource.RLIMIT_NOFILE)[1])


def allow_connections(connections: int) -> int:
    """Raise the limit for so many connections, as far as the system lets us. The number of files that may be open."""
    now, most = map(_count, resource.getrlimit(resource.RLIMIT_NOFILE))
    wanted = connections + SPARE
    if now < wanted and now < most:
        now = min(wanted, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    if now < wanted:
        log.warning("fewer files may be open than connections are allowed", extra={"files": now, "wanted": wanted})
    return now


def _count(limit: int) -> int:
    return UNLIMITED if limit == resource.RLIM_INFINITY else limit
