"""The textbook in Django: `select_for_update` inside `transaction.atomic`, one transaction a hold and one a payment.

Runs in an environment of its own (see django_peer.py) under gunicorn; TEXTBOOK_URL names the database.
"""

import json
import os
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings

_at = urlsplit(os.environ["TEXTBOOK_URL"])
_base = {"ENGINE": "django.db.backends.postgresql", "NAME": _at.path[1:], "CONN_MAX_AGE": None}
_who = {"USER": _at.username or "", "PASSWORD": _at.password or ""}
settings.configure(
    DATABASES={"default": _base | _who | {"HOST": _at.hostname or "", "PORT": _at.port or ""}},
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],  # says how long an answer is
    SECRET_KEY="a benchmark on loopback",
    USE_TZ=True,
    DEBUG=False,
)
django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402 - Django wants its settings first
from django.db import models, transaction  # noqa: E402
from django.http import HttpRequest, JsonResponse  # noqa: E402
from django.urls import path  # noqa: E402


class Booking(models.Model):
    fan = models.TextField()
    state = models.TextField()

    class Meta:
        app_label, managed, db_table = "textbook", False, "textbook_bookings"


class Seat(models.Model):
    id = models.TextField(primary_key=True)
    state = models.TextField()
    booking = models.BigIntegerField(null=True)

    class Meta:
        app_label, managed, db_table = "textbook", False, "textbook_seats"


def hold(request: HttpRequest) -> JsonResponse:
    wish = json.loads(request.body)
    with transaction.atomic():
        seats: list[Any] = list(Seat.objects.select_for_update().filter(id__in=wish["seats"]).order_by("id"))
        if len(seats) != len(wish["seats"]) or any(seat.state != "free" for seat in seats):
            return JsonResponse({"detail": "taken"}, status=409)
        booking = Booking.objects.create(fan=wish["fan"], state="held")
        Seat.objects.filter(id__in=wish["seats"]).update(state="held", booking=booking.id)
    return JsonResponse({"booking": booking.id, "seats": wish["seats"]}, status=201)


def pay(request: HttpRequest, booking_id: int) -> JsonResponse:
    with transaction.atomic():
        booking = Booking.objects.select_for_update().get(id=booking_id)
        if booking.state != "held":
            return JsonResponse({"detail": "not held"}, status=409)
        booking.state = "confirmed"
        booking.save(update_fields=["state"])
        Seat.objects.filter(booking=booking.id).update(state="sold")
    return JsonResponse({"booking": booking.id, "state": "confirmed"})


urlpatterns = [path("holds", hold), path("bookings/<int:booking_id>/pay", pay)]
application = get_wsgi_application()
