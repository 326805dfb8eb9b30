"""What the waiting room answers over HTTP: visitors, documents, the page, the organiser."""
