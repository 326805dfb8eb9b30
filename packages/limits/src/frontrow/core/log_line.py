"""One kind of log line, and the lines of the limiter and of background work.

A line has an `action`, by which it is found, and ids; never a name, an address, a card or a text that somebody wrote.
Call it where the decision is saved: `LIMITS_SHARED_AGAIN(store=…)`. The platform's lines are in `shared.log_lines`.
"""

import logging


class LogLine:
    """One kind of line: its action, level, logger, the fields it has and when it is written. Call it to write one."""

    def __init__(
        self, action: str, logger: str, fields: str, when: str, *, level: int = logging.INFO, text: str = ""
    ) -> None:
        """`text`: the message, for those who do not log as JSON; it may name the fields."""
        self.action, self.logger, self.fields, self.when, self.level = (
            action,
            logger,
            tuple(fields.split()),
            when,
            level,
        )
        self._log = logging.getLogger(f"frontrow.{logger}")
        self._text = text or action.replace("_", " ")

    def __call__(self, **fields: object) -> None:
        if self._log.isEnabledFor(self.level):
            self._log.log(self.level, self._text, fields, extra={"action": self.action, **fields})


LIMITS_WITHOUT_STORE = LogLine(
    "limits_without_store",
    "limits",
    "store problem",
    "The limit store does not answer. Each rule's `on_store_down` decides: `local` counts in this process alone.",
    level=logging.WARNING,
    text="limit store %(store)s is down: %(problem)s. Each rule's on_store_down decides meanwhile",
)
LIMITS_SHARED_AGAIN = LogLine(
    "limits_shared_again",
    "limits",
    "store",
    "The limit store answers again. All servers count together.",
    text="limit store %(store)s answers again",
)
LIMITS_SHEDDING = LogLine(
    "limits_shedding",
    "limits",
    "limiter at_once",
    "An adaptive limit or the overload gate begins to refuse requests: more come than can be served at once.",
    level=logging.WARNING,
    text="%(limiter)s sheds requests: at most %(at_once)s are served at once",
)
LIMITS_SHEDDING_OVER = LogLine(
    "limits_shedding_over",
    "limits",
    "limiter at_once",
    "The adaptive limit or the overload gate has refused nobody for five seconds.",
    text="%(limiter)s sheds no more requests: %(at_once)s may be served at once",
)
LIMIT_RULES_TAKEN = LogLine(
    "limit_rules_taken",
    "limits",
    "book version rules",
    "This server has put a version of the shared rule book in force.",
    text="rule book %(book)s: version %(version)s with %(rules)s rules is in force",
)
LIMIT_RULES_KEPT = LogLine(
    "limit_rules_kept",
    "limits",
    "book version problem",
    "The shared rule book could not be read, or this server cannot take it. The rules that were in force stay.",
    level=logging.WARNING,
    text="rule book %(book)s: the rules of version %(version)s stay: %(problem)s",
)
LIMIT_SHADOW_REFUSED = LogLine(
    "limit_shadow_refused",
    "limits",
    "rule refusals",
    "A shadow rule would have refused so many requests since the last such line, which is at least a minute ago.",
    text="shadow rule %(rule)s would have refused %(refusals)s requests",
)
JOB_FAILED = LogLine(
    "job_failed",
    "jobs",
    "job times",
    "Background work failed, `times` times since the last such line. It has a traceback, or a `problem` if a store or "
    "the mail server was away, and ids of what it was about.",
    level=logging.ERROR,
)
