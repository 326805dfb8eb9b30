"""What refunds store: returned tickets."""
