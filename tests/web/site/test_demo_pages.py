"""The demo's own pages: only in a demo, nothing of the disk but its mails, and a mail's HTML does nothing."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from tests.support.browser_headers import BROWSER
from tests.web.api.support import a_client, a_platform

PAGES = ("/demo", "/demo/mails", "/demo/mails/x.eml", "/demo/mails/x.eml/html", "/demo/mails/x.eml/files/0")


def a_mail(folder: Path, name: str, html: str = "<p>Hello</p>") -> None:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Hello <b>", "shop@example.org", "ada@example.org"
    mail.set_content("Open http://127.0.0.1/bookings/bkg_1. Bye")
    mail.add_alternative(html + '<img src="cid:qr">', subtype="html")
    mail.get_payload()[1].add_related(b"\x89PNG", "image", "png", cid="<qr>")  # type: ignore[union-attr]
    mail.add_attachment(b"%PDF-", "application", "pdf", filename="tickets é.pdf")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(mail.as_bytes())


async def test_the_mails_of_a_demo_are_listed_and_shown(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        empty = await client.get("/demo/mails", headers=BROWSER)
        assert "No mail yet" in empty.text
        a_mail(tmp_path / "outbox", "one.eml", "<script>alert(1)</script><p>Hello</p>")
        listed = await client.get("/demo/mails", headers=BROWSER)
        assert "Hello &lt;b&gt;" in listed.text
        assert "to ada@example.org · 1 file" in listed.text
        shown = await client.get("/demo/mails/one.eml", headers=BROWSER)
        assert 'href="http://127.0.0.1/bookings/bkg_1"' in shown.text
        assert "<script>alert" not in shown.text
        html = await client.get("/demo/mails/one.eml/html", headers=BROWSER)
        assert "data:image/png;base64,iVBORw==" in html.text
        policy = html.headers["content-security-policy"]
        assert "sandbox allow-popups allow-popups-to-escape-sandbox" in policy
        assert "allow-scripts" not in policy
        assert "allow-same-origin" not in policy
        file = await client.get("/demo/mails/one.eml/files/0", headers=BROWSER)
        assert file.content == b"%PDF-"
        assert file.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
        assert (await client.get("/demo", headers=BROWSER)).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/demo/mails/../frontrow.toml",
        "/demo/mails/..%2f..%2fetc%2fpasswd",
        "/demo/mails/secret.key",
        "/demo/mails/.eml",
        "/demo/mails/%00.eml",
        "/demo/mails/one.eml/files/1",
        "/demo/mails/one.eml/files/-1",
        "/demo/mails/gone.eml",
        "/demo/mails/folder.eml",
        "/demo/mails/large.eml",
    ],
)
async def test_nothing_else_of_the_disk_can_be_read(tmp_path: Path, path: str) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        a_mail(tmp_path / "outbox", "one.eml")
        (tmp_path / "outbox" / "folder.eml").mkdir()
        (tmp_path / "outbox" / "large.eml").write_bytes(b"x" * (5 * 1024 * 1024 + 1))
        (tmp_path / "secret.key").write_text("a private key")
        answer = await client.get(path, headers=BROWSER)
        assert answer.status_code == 404
        assert "a private key" not in answer.text
        assert "Hello" in (await client.get("/demo/mails", headers=BROWSER)).text


@pytest.mark.parametrize("path", PAGES)
async def test_a_real_shop_has_none_of_these_pages(tmp_path: Path, path: str) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        a_mail(tmp_path / "outbox", "x.eml")
        object.__setattr__(platform.settings.server, "demo", False)  # everything else of a real shop is elsewhere
        assert (await client.get(path, headers=BROWSER)).status_code == 404
