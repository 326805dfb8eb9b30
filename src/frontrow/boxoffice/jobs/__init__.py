"""Background jobs: polling, what each worker runs, and following the sales."""
