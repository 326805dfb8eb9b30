"""What organisers store and read: their changes, brands, figures, reports, reseating."""
