"""Carries out what a connector decides: exchanges, renews and ends, and follows the room's keys and ended visits."""

import json
import logging
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote, urlencode

from frontrow.waitingroom.protect.connector import (
    KEPT_COOKIE_S,
    PASS_COOKIE_S,
    Decision,
    Known,
    Setup,
    b64,
    decide,
    learn,
    to_room,
)
from frontrow.waitingroom.protect.connector_rules import read_rules

MAX_ANSWER_BYTES: Final = 4_194_304
TIMEOUT_S: Final = 2.0
RULES_EVERY_S: Final = 5.0

log = logging.getLogger("frontrow.connector")

Fetch = Callable[[str, bytes | None, dict[str, str]], tuple[int, Any]]


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None: ...


_opener = urllib.request.build_opener(_NoRedirects)


def fetch(url: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, Any]:
    """Status and JSON of a call to the room; status 0 if it does not answer."""
    try:
        try:
            with _opener.open(urllib.request.Request(url, body, headers), timeout=TIMEOUT_S) as answer:  # noqa: S310
                return answer.status, json.loads(answer.read(MAX_ANSWER_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read(MAX_ANSWER_BYTES))
    except (OSError, ValueError) as error:
        log.warning("the waiting room at %s does not answer: %r", url, error)
        return 0, {}


class Connector:
    """Decides about requests, and talks to the room. Safe in threads. Calls block for at most some seconds."""

    def __init__(
        self,
        setup: Setup,
        *,
        follow_s: float = 2.0,
        call: Fetch = fetch,
        now: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`follow_s`: how old the keys and the list of ended visits may be."""
        self.setup, self.known = setup, Known()
        self._follow_s, self._call, self._now, self._monotonic = follow_s, call, now, monotonic
        self._lock = threading.Lock()
        self._asked_s = self._asked_rules_s = float("-inf")

    @property
    def is_stale(self) -> bool:
        """Whether `handle` would ask the room for keys and ended visits first."""
        return self._keys_are_due(self._follow_s) or self._rules_are_due()

    def look(self, method: str, target: str, headers: Mapping[str, str], address: str = "") -> Decision:
        """`decide` by what is known, without a call."""
        fresh = b64(secrets.token_bytes(32))
        return decide(self.setup, self.known, method, target, headers, int(self._now()), fresh, address)

    def handle(self, method: str, target: str, headers: Mapping[str, str], address: str = "") -> Decision:
        """`decide`, carried out: exchanged, renewed and ended. The action is then pass, open, strip (a redirect to
        `location`), room, refuse, end or away (the room does not answer)."""
        self.follow(self._follow_s)
        done = self.look(method, target, headers, address)
        if done.code == "key_unknown":  # a new key, perhaps
            self.follow(0.5)
            done = self.look(method, target, headers, address)
        if done.action == "exchange":
            return self._exchange(done)
        if done.action == "end":
            if done.given and self._room("give-back", done.given)[0] != 200:
                log.warning("the room did not hear that a visit ended; it ends with its pass")
            return done
        if not self.known.keys and done.code == "key_unknown":
            return Decision("away")
        return self._renew(done) if done.renew else done

    def _exchange(self, asked: Decision) -> Decision:
        form = urlencode({"token": asked.token, "verifier": asked.verifier}).encode()
        status, told = self._call(f"{self.setup.room}/exchange", form, {})
        if status == 200:
            self._asked_s = float("-inf")  # its key may be new
            cookie = self.setup.cookie_line("pass", told["pass"], PASS_COOKIE_S)
            return Decision("strip", location=asked.page, cookies=(cookie,))
        if status == 0 or status >= 500:
            return Decision("away")
        return to_room(self.setup, asked.page, asked.verifier, "", "pass_required")

    def _renew(self, done: Decision) -> Decision:
        status, told = self._room("renew", done.given)
        line = self.setup.cookie_line
        if status == 200:
            cookies = (line("pass", told["pass"], PASS_COOKIE_S),)
        else:  # the pass is good until it expires; ask again later
            cookies = (line("kept", "1", KEPT_COOKIE_S),)
        return Decision("pass", person=done.person, visit=done.visit, given=done.given, cookies=cookies)

    def _room(self, endpoint: str, given: str) -> tuple[int, Any]:
        return self._call(f"{self.setup.room}/{endpoint}", b"", {"Frontrow-Pass": given})

    def follow(self, max_age_s: float) -> None:
        """Ask the room for its keys and for the visits that ended, unless that was done just now. One caller asks,
        the others go on; only the first keys are waited for."""
        if not self._keys_are_due(max_age_s) and not self._rules_are_due():
            return
        if not self._lock.acquire(blocking=not self.known.keys):
            return
        try:
            if self._rules_are_due():
                self._asked_rules_s = self._monotonic()
                self._read_rules()
            if not self._keys_are_due(max_age_s):
                return
            self._asked_s = self._monotonic()
            status, told = self._call(f"{self.setup.room}/connector?after={quote(self.known.mark)}", None, {})
            if status == 200:
                self.known = learn(self.known, told)
                self._asked_s -= 0 if told["complete"] else self._follow_s
        finally:
            self._lock.release()

    def _keys_are_due(self, max_age_s: float) -> bool:
        return self._monotonic() - self._asked_s >= (max_age_s if self.known.keys else 0.5)

    def _rules_are_due(self) -> bool:
        every_s = RULES_EVERY_S if self.known.rules else self._follow_s
        return bool(self.setup.rules_key) and self._monotonic() - self._asked_rules_s >= every_s

    def _read_rules(self) -> None:
        """Read the rules of the room. Whatever goes wrong: the last ones stay in use, and the log says so."""
        url = f"{self.setup.room}/rules"
        status, told = self._call(url, None, {"Authorization": f"Bearer {self.setup.rules_key}"})
        try:
            if status != 200:
                raise ValueError(f"status {status}")
            self.known = replace(self.known, rules=read_rules(told, self.setup.event, int(self._now())))
        except ValueError as error:
            kept = "the last ones stay in use" if self.known.rules else "everything but open_paths needs a pass"
            log.warning("the rules at %s cannot be read (%s); %s", url, error, kept)
