"""A shop without our pages: everything a fan does, over the API, with the Python client.

Start a server with `frontrow serve --demo`, then `python examples/headless_shop.py http://127.0.0.1:8000`.
"""

import argparse

from frontrow.client import Client, SeatsTaken, calls


def buy(address: str, words: str, count: int, method: str, email: str, pause_s: float = 2.0) -> list[str]:
    """Find an event, wait for the turn, hold the best seats that fit, pay; the seats of the tickets."""
    with Client(address) as shop:
        events = shop.send(calls.list_events(words)).events
        if not events:
            raise SystemExit(f"no event on sale at {address} matches {words!r}")
        event = events[0]
        print(f"{event.name}, {event.starts_at}: {shop.send(calls.get_event(event.id)).free} seats left")
        shop.enter(event.id, most_pause_s=pause_s)  # the waiting room: join, look now and then, claim
        try:
            hold = shop.hold_best(event.id, count)
        except SeatsTaken:
            raise SystemExit(f"there are no {count} seats together") from None
        print(f"held until {hold.expires_at}: {', '.join(hold.seats)}")
        booking = shop.pay(hold.booking, method, email=email)
        if booking.state != "confirmed":
            raise SystemExit(f"the payment is {booking.checkout.state if booking.checkout else booking.state}")
        tickets = shop.tickets(booking.booking)
        for ticket in tickets:
            print(f"ticket for {ticket.seat}: {ticket.code[:24]}…")
        return [ticket.seat for ticket in tickets]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--words", default="", help="words of the event's name or city")
    parser.add_argument("--count", type=int, default=2)
    parser.add_argument("--method", default="pm_card_visa", help="what the payment provider takes")
    parser.add_argument("--email", default="fan@example.org")
    given = parser.parse_args()
    buy(given.address, given.words, given.count, given.method, given.email)
