"""Spellings of `/metrics`, and a client that sends a path exactly as it is given."""

import http.server

SPELLINGS = (
    *("/metrics", "/metrics/", "/metrics//", "/metrics%2f", "/metrics%2F", "/metrics/x", "/metrics?a=1", "/metrics;x"),
    *("//metrics", "/./metrics", "/x/../metrics", "/%6detrics", "/metrics/live", "/metrics%00"),
)


def status_of(port: int, path: str) -> tuple[int, bytes]:
    """The answer to exactly this path: no client mends it on the way."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest("GET", path, skip_host=False)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
