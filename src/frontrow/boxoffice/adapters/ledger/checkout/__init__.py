"""What the checkout stores: invoices and credit notes."""
