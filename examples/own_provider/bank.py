"""The made-up bank's page: shows what is to be paid, takes the answer, sends the fan back to the shop.

It writes into the book that `provider.py` reads. A real bank is somebody else's server.
"""

import html
import os
import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PAGE = """<!doctype html><title>Our bank</title><h1>Pay {amount} {currency}?</h1>
<form method="post"><button name="answer" value="yes">Pay</button><button name="answer" value="no">No</button></form>"""


class BankPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        ref, _ = self._asked()
        with closing(sqlite3.connect(os.environ["OUR_BANK_BOOK"], isolation_level=None)) as book:
            found = book.execute("SELECT amount, currency FROM payments WHERE ref = ?", (ref,)).fetchone()
        if found is None:
            self.send_error(404)
            return
        body = PAGE.format(amount=found[0] / 100, currency=html.escape(found[1])).encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        ref, back = self._asked()
        form = parse_qs(self.rfile.read(min(int(self.headers.get("content-length", 0)), 1_000)).decode())
        paid = form.get("answer") == ["yes"]
        answer = ("authorised", "") if paid else ("created", "refused_by_fan")
        with closing(sqlite3.connect(os.environ["OUR_BANK_BOOK"], isolation_level=None)) as book:
            book.execute("UPDATE payments SET state = ?, error = ? WHERE ref = ? AND state = 'action'", (*answer, ref))
        self.send_response(303)
        self.send_header("location", back)
        self.send_header("content-length", "0")
        self.end_headers()

    def _asked(self) -> tuple[str, str]:
        query = parse_qs(urlsplit(self.path).query)
        return query.get("ref", [""])[0], query.get("back", ["/"])[0]


def serve() -> ThreadingHTTPServer:
    """The bank at OUR_BANK_URL, where `provider.py` sends fans to."""
    port = urlsplit(os.environ.get("OUR_BANK_URL", "")).port or 9000
    return ThreadingHTTPServer(("127.0.0.1", port), BankPage)


if __name__ == "__main__":
    os.environ.setdefault("OUR_BANK_BOOK", "bank.sqlite")
    serve().serve_forever()
