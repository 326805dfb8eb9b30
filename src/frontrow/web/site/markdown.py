"""Descriptions in Markdown as safe HTML: headings, lists, emphasis and links, nothing else.

HTML in the text is shown as text. The result is cleaned once more by a list of allowed elements, so a mistake in one of
the two libraries lets nothing through.
"""

from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt
from markupsafe import Markup

TAGS: Final = frozenset(
    {"p", "br", "h2", "h3", "h4", "ul", "ol", "li", "em", "strong", "a", "blockquote", "hr", "code"}
)
SCHEMES: Final = frozenset({"https", "http", "mailto"})
LINK_REL: Final = "noopener noreferrer nofollow"
MAX_CACHED: Final = 512
LAST_HEADING: Final = 4
_reader: Final = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": 20}).disable("image")


@lru_cache(MAX_CACHED)
def as_html(text: str) -> Markup:
    """The text as HTML for a page whose heading is the event's name: `#` becomes `h2`."""
    tokens = _reader.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, LAST_HEADING)}"
    import nh3  # a room that is served alone shows no Markdown, and comes without it

    found = nh3.clean(
        _reader.renderer.render(tokens, _reader.options, {}),
        tags=set(TAGS),
        attributes={"a": {"href"}},
        url_schemes=set(SCHEMES),
        link_rel=LINK_REL,
    )
    return Markup(found)  # noqa: S704 - cleaned above
