"""What the waitlist stores: entries and offers."""
