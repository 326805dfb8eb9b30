"""O7: the page of refused keys in a browser."""

from playwright.sync_api import expect

from tests.limits.service.support import RULES, check, served

ONE = RULES.replace("3/day burst 3", "1/day burst 1")


def test_the_page_refreshes_itself_in_a_browser_in_light_and_dark(tmp_path, browser):
    with served(tmp_path, ONE) as (_, address):
        papers = []
        for scheme in ("light", "dark"):
            context = browser.new_context(color_scheme=scheme)
            page = context.new_page()
            errors: list[str] = []
            page.on("console", lambda said, errors=errors: errors.append(said.text) if said.type == "error" else None)
            page.goto(f"http://{address['http']}/refused")
            for _ in range(3):
                check(address["http"], f"<b>{scheme}</b>")
            row = page.get_by_role("row").filter(has_text=f"<b>{scheme}</b>")  # a key is text, never markup
            expect(row).to_contain_text("2")
            assert [text for text in errors if "favicon" not in text and "404" not in text] == []
            papers.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            context.close()
        assert papers[0] != papers[1]
