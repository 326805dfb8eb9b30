"""The mails that a site under test sent, and signing in by the link in one of them."""

import email
import email.policy
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.served import WAIT_S, Site
from tests.support.eventually import eventually_sync

SIGN_IN = r"http\S+/sign-in\S*#\S+"


def mails_of(site: Site) -> frozenset[Path]:
    """Every mail that came so far."""
    return frozenset(Path(site.platform.settings.mail_url).rglob("*.eml"))


def mail_with(site: Site, pattern: str, before: frozenset[Path] = frozenset()) -> str:
    """What a pattern finds in the newest mail that has it and was not there before; waits for the mail."""

    def found() -> str:
        for mail in sorted(mails_of(site) - before, key=lambda one: one.stat().st_mtime_ns, reverse=True):
            body = email.message_from_bytes(mail.read_bytes(), policy=email.policy.default).get_body(("plain",))
            match = re.search(pattern, body.get_content() if body else "")
            if match:
                return match[0]
        return ""

    return eventually_sync(found, WAIT_S)


def newest_link(site: Site, page: Page, before: frozenset[Path] = frozenset()) -> str:
    """The sign-in link in the newest mail of the outbox that was not there before."""
    return mail_with(site, SIGN_IN, before)


def sign_in(page: Page, site: Site, address: str = "ada@example.org", back: str = "/tickets") -> None:
    """By the link in the mail; ends on the page `back`."""
    before = mails_of(site)  # of others who signed in here: their links are spent
    page.goto(f"{site.url}/sign-in?back={back}")
    page.get_by_label("Email", exact=True).fill(address)
    page.get_by_role("button", name="Send me a link").click()
    expect(page.get_by_role("heading", name="Check your inbox")).to_be_visible()
    page.goto(newest_link(site, page, before))
    page.wait_for_url(f"**{back}")
