"""What choices store: how often codes, types and add-ons are used."""
