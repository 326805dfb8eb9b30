"""The table of the limiter's options is the one that the code gives, and every option says what it means."""

import pytest

from docsite import limit_options
from tests.docs.blocks import ROOT


def test_the_page_is_what_the_code_says() -> None:
    written = (ROOT / "docs" / "limits-options.md").read_text("utf-8")
    assert written == limit_options.page(), "python -m docsite.limit_options > docs/limits-options.md"


def test_every_option_has_a_meaning_and_every_meaning_an_option() -> None:
    options = {name for each in limit_options.takers().values() for name in each}
    assert options == set(limit_options.MEANINGS)
    assert len(options) > 40


def test_an_option_without_a_meaning_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def takes(*, brand_new: int = 3) -> None: ...

    monkeypatch.setattr(limit_options.Limiter, "__init__", takes)
    with pytest.raises(KeyError, match="brand_new"):
        limit_options.page()
