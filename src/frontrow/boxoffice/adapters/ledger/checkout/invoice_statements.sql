-- name: begin_invoice_numbers(organiser_id text)
-- The counter of an organiser, made once.
INSERT INTO invoice_numbers (organiser_id, last_number) SELECT r.organiser_id, 0 FROM :rows WHERE true
ON CONFLICT DO NOTHING

-- name: lock_invoice_numbers() :organiser_id text
-- Locks the counter until the transaction ends: the next number waits for this one to be used or given back.
SELECT n.last_number FROM invoice_numbers AS n WHERE n.organiser_id = :organiser_id :for_update

-- name: set_invoice_numbers(organiser_id text, last_number int)
UPDATE invoice_numbers AS n SET last_number = r.last_number FROM :rows WHERE n.organiser_id = r.organiser_id

-- name: add_invoices(organiser_id text, number int, booking_id text, refund_id text, issued_at_us int, document text)
INSERT INTO invoices (organiser_id, number, booking_id, refund_id, issued_at_us, document)
SELECT r.organiser_id, r.number, r.booking_id, r.refund_id, r.issued_at_us, r.document FROM :rows

-- name: invoices_of() :booking_id text
SELECT i.organiser_id, i.number, i.booking_id, i.refund_id, i.issued_at_us, i.document FROM invoices AS i
WHERE i.booking_id = :booking_id ORDER BY i.number

-- name: invoice_by_number() :organiser_id text :number int
SELECT i.organiser_id, i.number, i.booking_id, i.refund_id, i.issued_at_us, i.document FROM invoices AS i
WHERE i.organiser_id = :organiser_id AND i.number = :number

-- name: invoices_page() :organiser_id text :before int :limit int
SELECT i.organiser_id, i.number, i.booking_id, i.refund_id, i.issued_at_us, i.document FROM invoices AS i
WHERE i.organiser_id = :organiser_id AND i.number < :before ORDER BY i.number DESC LIMIT :limit
