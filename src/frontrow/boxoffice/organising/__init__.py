"""What organisers do: events, venues, reseating, sales figures, exports."""
