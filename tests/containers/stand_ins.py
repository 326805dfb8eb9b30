"""Stand-ins for the base images of deploy/, made from Debian's packages under the very names that the files use.

Each keeps what our files rely on in the real image: its commands, its entrypoint's duties (volumes that belong to the
right user, a database made at the first start), its user and its working folder.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

SUITES = ("trixie", "sid")  # sid: nginx from 1.27.3 on knows `server … resolve`, and Prometheus 3
# a mirror that stands still for some days is good enough for a stand-in; what it holds is signed all the same
UPDATE = "apt-get -o Acquire::Check-Valid-Until=false update"
INSTALL = UPDATE + " && apt-get install -y --no-install-recommends {} && rm -rf /var/lib/apt/lists/*"

VALKEY = """#!/bin/sh
set -eu
if [ "$1" = valkey-server ] && [ "$(id -u)" = 0 ]; then
  chown -R valkey .
  exec setpriv --reuid=valkey --regid=valkey --clear-groups "$0" "$@"
fi
[ "$1" = valkey-server ] && set -- "$@" --protected-mode no # the real image is built so
exec "$@"
"""

POSTGRES = """#!/bin/sh
set -eu
[ "$1" = postgres ] || exec "$@"
if [ "$(id -u)" = 0 ]; then
  mkdir -p "$PGDATA" && chown postgres "$PGDATA" && chmod 700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-host=scram-sha-256 --auth-local=trust
  rm /tmp/password
  echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
  pg_ctl -w -o "-c listen_addresses=" start
  createdb --username="$POSTGRES_USER" "$POSTGRES_DB"
  pg_ctl -w stop
fi
exec "$@" -c listen_addresses='*'
"""


@dataclass(frozen=True, slots=True)
class StandIn:
    """How one image is made. `lines` follow the packages in its Containerfile; `scripts` are files beside it."""

    suite: str
    packages: tuple[str, ...]
    version: str  # a command that prints what it really is
    lines: tuple[str, ...] = ()
    script: str = ""

    def containerfile(self) -> str:
        made = [f"FROM {debian(self.suite)}", f"RUN {INSTALL.format(' '.join(self.packages))}"]
        made += ["COPY entrypoint /usr/local/bin/entrypoint"] if self.script else []
        return "\n".join([*made, *self.lines, ""])

    def digest(self) -> str:
        """Changes with everything that it is made from."""
        return hashlib.sha256(f"{self.containerfile()}\0{self.script}".encode()).hexdigest()[:16]


STAND_INS = {
    "python": StandIn(
        "trixie",
        ("python3", "python3-venv", "ca-certificates"),
        "python --version",
        ("RUN ln -s /usr/bin/python3 /usr/local/bin/python && ln -s /usr/bin/python3 /usr/local/bin/python3",),
    ),
    "valkey/valkey": StandIn(
        "trixie",
        ("valkey-server", "valkey-tools"),
        "valkey-server --version",
        (
            "RUN mkdir -p /data && chown valkey:valkey /data",
            "VOLUME /data",
            "WORKDIR /data",
            'ENTRYPOINT ["entrypoint"]',
            'CMD ["valkey-server"]',
        ),
        VALKEY,
    ),
    "postgres": StandIn(
        "trixie",
        ("postgresql-17",),
        "postgres --version",
        (
            "ENV PATH=/usr/lib/postgresql/17/bin:$PATH PGDATA=/var/lib/postgresql/data",
            "RUN mkdir -p $PGDATA /run/postgresql && chown postgres $PGDATA /run/postgresql",
            "VOLUME /var/lib/postgresql/data",
            "STOPSIGNAL SIGINT",
            'ENTRYPOINT ["entrypoint"]',
            'CMD ["postgres"]',
        ),
        POSTGRES,
    ),
    "nginx": StandIn(
        "sid",
        ("nginx", "busybox"),
        "nginx -v 2>&1",
        (
            "RUN ln -s /usr/bin/busybox /usr/local/bin/wget",
            "STOPSIGNAL SIGQUIT",
            """CMD ["nginx", "-g", "daemon off;"]""",
        ),
    ),
    "prom/prometheus": StandIn(
        "sid",
        ("prometheus", "busybox"),
        "prometheus --version | head -1",
        (
            "RUN ln -s /usr/bin/busybox /usr/local/bin/wget && mkdir -p /prometheus && chown nobody /prometheus",
            "USER nobody",
            "VOLUME /prometheus",
            "WORKDIR /prometheus",
            'ENTRYPOINT ["prometheus"]',
            'CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]',
        ),
    ),
}


def debian(suite: str) -> str:
    """The name of an image with nothing but Debian's base system."""
    return f"localhost/frontrow-stand-in/debian:{suite}"


def repository(image: str) -> str:
    """An image's name without its tag and its digest."""
    return re.sub(r"(:[\w.-]+)?(@sha256:[0-9a-f]+)?$", "", image)


def full_name(image: str) -> str:
    """The name under which an engine looks for it."""
    first, slash, _ = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return image
    return f"docker.io/{image}" if slash else f"docker.io/library/{image}"


def python_image(dockerfile: Path) -> str:
    """The base image that our Dockerfile names."""
    found = re.search(r"^ARG PYTHON_IMAGE=(\S+)$", dockerfile.read_text(), re.M)
    assert found, dockerfile
    return found[1]


def archive_of(sources: str) -> str | None:
    """The first archive of Debian itself in apt's sources, in the old form or the new one."""
    found = re.findall(r"^\s*(?:URIs:|deb(?:\s+\[[^]]*\])?)\s+(\S+)", sources, re.M)
    return next((uri.rstrip("/") for uri in found if re.search(r"/debian/?$", uri)), None)
