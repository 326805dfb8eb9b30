"""The pages for fans: events, waiting room, seats, checkout, tickets."""
