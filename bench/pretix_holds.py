"""pretix' own way to hold a seat (its CartManager), one after the other, in one process. Run by bench/pretix_peer.py.

Runs with the Python of a throw-away environment that has pretix: `python pretix_holds.py <postgres url> <seconds>`.
Tables are made without pretix' migrations (they take over ten minutes). Prints one JSON line.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import types
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit

SEATS = 2_000


class NoMigrations:
    """Every app's tables are made as they are now."""

    def __contains__(self, app: str) -> bool:
        return True

    def __getitem__(self, app: str) -> None:
        return None


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def set_up(url: str) -> None:
    os.environ["DATA_DIR"] = tempfile.mkdtemp(prefix="frontrow-pretix-")
    settings: Any = types.ModuleType("pretix_bench_settings")
    from pretix.testutils import settings as theirs

    settings.__dict__.update({name: getattr(theirs, name) for name in dir(theirs) if name.isupper()})
    parts = urlsplit(url)
    settings.DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "USER": parts.username,
            "PASSWORD": parts.password or "",
            "HOST": parts.hostname,
            "PORT": parts.port,
            "CONN_MAX_AGE": 600,
        }
    }
    settings.MIGRATION_MODULES = NoMigrations()
    settings.DEBUG = False
    sys.modules["pretix_bench_settings"] = settings
    os.environ["DJANGO_SETTINGS_MODULE"] = "pretix_bench_settings"
    import django
    from django.core.management import call_command

    django.setup()
    say("pretix: making its tables")
    call_command("migrate", run_syncdb=True, verbosity=0)


def event_with_seats() -> tuple[Any, Any, list[Any]]:
    from django.utils.timezone import now
    from pretix.base.models import Event, Organizer, Quota, Seat

    organizer = Organizer.objects.create(name="Bench", slug="bench")
    event = Event.objects.create(
        organizer=organizer,
        name="Bench",
        slug="bench",
        date_from=now() + timedelta(days=9),
        live=True,
        currency="EUR",
        plugins="",
    )
    item = event.items.create(name="Seat", default_price=Decimal("50.00"))
    quota = Quota.objects.create(event=event, name="all", size=None)
    quota.items.add(item)
    event.seat_category_mappings.create(layout_category="Stalls", product=item)
    seats = [
        Seat(event=event, product=item, seat_number=str(n), row_name="1", zone_name="Stalls", seat_guid=f"s{n}")
        for n in range(SEATS)
    ]
    Seat.objects.bulk_create(seats)
    return event, item, list(event.seats.order_by("id"))


def hold(event: Any, item: Any, seat: Any, number: int) -> None:
    from pretix.base.services.cart import CartManager

    cart = CartManager(event=event, cart_id=f"cart{number}@api", sales_channel=event.organizer.sales_channels.first())
    cart.add_new_items([{"item": item.pk, "variation": None, "count": 1, "price": None, "seat": seat.seat_guid}])
    cart.commit()


def main() -> None:
    arguments = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    arguments.add_argument("postgres_url")
    arguments.add_argument("seconds", type=float)
    chosen = arguments.parse_args()
    url, seconds = chosen.postgres_url, chosen.seconds
    set_up(url)
    from django_scopes import scope, scopes_disabled

    with scopes_disabled():
        event, item, seats = event_with_seats()
    say(f"pretix: holding seats for {seconds:.0f} s")
    with scope(organizer=event.organizer):
        for number in range(5):
            hold(event, item, seats[number], number)
        cpu_s, begin, done = time.process_time(), time.perf_counter(), 0
        while done < SEATS - 5 and time.perf_counter() - begin < seconds:
            hold(event, item, seats[5 + done], 5 + done)
            done += 1
        wall_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu_s
        from pretix.base.models import CartPosition

        assert CartPosition.objects.filter(event=event, seat__isnull=False).count() == done + 5
    print(json.dumps({"holds_per_s": round(done / wall_s, 1), "cpu_ms": round(cpu_s / done * 1e3, 2), "holds": done}))


if __name__ == "__main__":
    main()
