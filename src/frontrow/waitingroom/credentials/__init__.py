"""What people carry: signed places, passes, fan codes, and the keys that sign them."""
