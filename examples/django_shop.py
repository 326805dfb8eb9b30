"""A Django shop behind the waiting room: nobody sees a page of it without a pass, except /static/ and /health.

Start the room with `frontrow room serve --event aurora --shop http://127.0.0.1:8000/`, then the shop with
`python examples/django_shop.py runserver 8000 --noreload`, and open http://127.0.0.1:8000/.
"""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.utils.html import escape

from frontrow.waitingroom.protect import Guard, PassKeys
from frontrow.waitingroom.protect.wsgi import PassMiddleware

ROOM = os.environ.get("ROOM_URL", "http://127.0.0.1:8008")

settings.configure(
    DEBUG=False,
    SECRET_KEY="only for this example",  # noqa: S106
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    WSGI_APPLICATION=f"{__name__}.app",
)


def health(request: HttpRequest) -> HttpResponse:
    return HttpResponse("ok")


def seats(request: HttpRequest) -> HttpResponse:
    visit = request.META["frontrow.pass"]  # whose pass it is, and until when
    return HttpResponse(f"<h1>Welcome! Choose your seats.</h1><p>Your pass: {escape(visit.person)}</p>")


urlpatterns = [path("health", health), path("", seats), path("seats", seats)]
keys = PassKeys(f"{ROOM}/.well-known/jwks.json", "aurora")
guard = Guard(keys, room_url=f"{ROOM}/", open_paths=["/static/", "/health"])
app = PassMiddleware(get_wsgi_application(), guard)

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
