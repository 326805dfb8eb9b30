"""What events store: the catalogue, the search index, the status, pictures."""
