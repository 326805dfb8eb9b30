"""The API for organisers and their teams."""
