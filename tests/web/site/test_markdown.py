"""Descriptions in Markdown: what organisers write looks as they mean it, and nothing of it runs."""

import re
from pathlib import Path

import pytest

from frontrow.boxoffice.events.model.events import EventLink, check_event
from frontrow.core.errors import InvalidInput
from frontrow.web.site.markdown import TAGS, as_html
from tests.support.browser_headers import BROWSER
from tests.web.api.support import EVENT_ID, a_client, a_platform, an_event, one_row, put_event
from tests.web.site.event_markup import LD, wait_for_event

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
    '[x](https://e.org "onmouseover=alert(1)")',
    '[x](https://e.org/"onmouseover="alert(1))',
    "![x](https://evil.example/pixel.png)",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<svg/onload=alert(1)>",
    "`<b>`\n\n    <iframe src=x>",
    "> " * 500 + "deep",
    "[" * 2_000,
    "*" * 5_000 + "a",
)


@pytest.mark.parametrize("text", ATTACKS)
def test_nothing_of_a_description_runs(text: str) -> None:
    html = as_html(text)
    assert {name.lower() for name in re.findall(r"<\s*/?\s*([a-zA-Z]+)", html)} <= TAGS
    assert {name for tag in re.findall(r"<[a-z][^>]*>", html) for name in re.findall(r"\s([a-z-]+)=", tag)} <= {
        "href",
        "rel",
        "title",
    }
    assert not re.search(r'href="(?!https?:|mailto:)', html)


def test_markdown_looks_as_meant() -> None:
    html = as_html("# Strings\nOne line\nand **another**\n\n- a\n- b\n\n[Band](https://e.org)")
    assert "<h2>Strings</h2>" in html
    assert "One line<br>\nand <strong>another</strong>" in html
    assert "<li>a</li>" in html
    assert '<a href="https://e.org" rel="noopener noreferrer nofollow">Band</a>' in html


async def test_an_event_shows_its_description_line_up_and_links(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        links = (EventLink("https://example.org/band", "The band"), EventLink("https://example.org/hall"))
        await put_event(
            platform, description="## Strings\n\n<b>bold</b>", line_up=("Ada & Friends", "Grace"), links=links
        )
        await wait_for_event(platform, "Strings")
        page = (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        assert "<h3>Strings</h3>" in page
        assert "&lt;b&gt;bold&lt;/b&gt;" in page
        assert "<bdi>Ada &amp; Friends</bdi>" in page
        assert 'href="https://example.org/band"' in page
        assert '"performer":[{"@type":"PerformingGroup","name":"Ada \\u0026 Friends"}' in LD.findall(page)[0]


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"links": (EventLink("javascript:alert(1)"),)}, "links"),
        ({"links": (EventLink("https://"),)}, "links"),
        ({"links": (EventLink("https://e.org/\n"),)}, "links"),
        ({"links": (EventLink("https://e.org"),) * 11}, "links"),
        ({"line_up": ("",)}, "line_up"),
        ({"line_up": ("x" * 101,)}, "line_up"),
        ({"line_up": ("x",) * 51}, "line_up"),
    ],
)
def test_rubbish_is_refused_by_name(changes: dict[str, object], param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_event(an_event(1, "hash", **changes), one_row(2))
    assert refused.value.param == param
