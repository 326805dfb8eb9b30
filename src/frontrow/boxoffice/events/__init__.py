"""Events: their dates and status, their listing and search, and what organisers change about them."""
