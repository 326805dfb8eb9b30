"""Verifies passes in the shop's own process with the room's published keys (JWKS), which are cached.

An unknown key id causes a fetch, at most one per `refetch_s` seconds. So a rotation is noticed at once, and a flood of
forged ids does not reach the room. If the room does not answer, the cached keys stay in use. A pass seen before costs a
dictionary lookup; its expiry is checked every time.
"""

import json
import logging
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import jwt

from frontrow.core.errors import ConfigError, Unavailable
from frontrow.waitingroom.credentials.passes import ALGORITHMS, DOCUMENT_KEY, MAX_PASS_CHARS, Pass, PassVerifier
from frontrow.waitingroom.model.errors import PassForeign

MAX_JWKS_BYTES = 65_536
FETCH_TIMEOUT_S = 3.0

log = logging.getLogger("frontrow.protect")


def fetch_json(url: str) -> Any:
    """The JSON at an http(s) URL, within a timeout and a size."""
    try:
        with urllib.request.urlopen(url, timeout=FETCH_TIMEOUT_S) as response:  # noqa: S310  # the scheme is checked below
            return json.loads(response.read(MAX_JWKS_BYTES))
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise


class PassKeys:
    """`verify(text, now_s)` for a `Guard`: a JWKS (as a dictionary or by URL) and the event passes must be for."""

    def __init__(
        self,
        jwks: str | dict[str, Any],
        event: str,
        *,
        refetch_s: float = 30.0,
        fetch: Callable[[str], Any] = fetch_json,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        if isinstance(jwks, str) and not jwks.startswith(("http://", "https://")):
            raise ConfigError("the keys come from an http(s) URL or a dictionary", param="jwks")
        self._url = jwks if isinstance(jwks, str) else ""
        self._event = event
        self._refetch_s = refetch_s
        self._fetch = fetch
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._fetched_s = float("-inf")
        self._kids: frozenset[str] = frozenset()
        self._verifier: PassVerifier | None = None
        if isinstance(jwks, dict):
            self._use_keys(jwks)

    def __call__(self, text: str, now_s: int) -> Pass:
        """The pass, checked; raises as `PassVerifier.verify` does."""
        if self.may_fetch(text):
            self._fetch_keys()
        if self._verifier is None:
            raise Unavailable("the waiting room's keys cannot be fetched; try again", retry_after_s=5)
        visit = self._verifier.verify(text, self._event, now_s)
        if visit.shop:
            raise PassForeign("this pass is for a shop on another domain", shop=visit.shop)
        return visit

    def may_fetch(self, text: str) -> bool:
        """True if this pass names a key that is not cached and keys may be fetched again."""
        if not self._url or self._monotonic() - self._fetched_s < self._refetch_s:
            return False
        return self._verifier is None or not (self._verifier.is_cached(text) or _kid(text) in self._kids)

    def _fetch_keys(self) -> None:
        with self._lock:
            if self._monotonic() - self._fetched_s < self._refetch_s:
                return  # another thread has just fetched them
            self._fetched_s = self._monotonic()
            try:
                self._use_keys(self._fetch(self._url))
            except Exception as error:  # whatever it is: the cached keys stay in use, and the shop's log says so
                kept = "the cached keys stay in use" if self._verifier else "nobody is admitted until it answers"
                log.warning("the waiting room's keys at %s cannot be fetched (%r); %s", self._url, error, kept)
                if self._verifier is None:
                    self._fetched_s = self._monotonic() - self._refetch_s + min(1.0, self._refetch_s)

    def _use_keys(self, jwks: dict[str, Any]) -> None:
        # the key of the now-serving document is published here too
        ours = [key for key in jwks["keys"] if key.get("alg") in ALGORITHMS and key.get("kid") != DOCUMENT_KEY]
        verifier = PassVerifier({"keys": ours})
        self._kids = frozenset(key["kid"] for key in ours)
        self._verifier = verifier


def _kid(text: str) -> str:
    try:
        return str(jwt.get_unverified_header(text).get("kid", "")) if len(text) <= MAX_PASS_CHARS else ""
    except jwt.InvalidTokenError:
        return ""
