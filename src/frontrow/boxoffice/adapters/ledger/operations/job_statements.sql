-- name: due_work(kind text) :now_us int
-- The kinds of work that are due, by the conditions of the statements that claim them.
SELECT 'facts' WHERE EXISTS (SELECT 1 FROM outbox
  WHERE number > 0 AND published_at_us IS NULL AND leased_until_us <= :now_us)
UNION ALL SELECT 'holds' WHERE EXISTS
  (SELECT 1 FROM bookings WHERE state IN ('held', 'paying') AND hold_expires_at_us <= :now_us)
UNION ALL SELECT 'payments' WHERE EXISTS (SELECT 1 FROM payments WHERE retry_at_us > 0 AND retry_at_us <= :now_us)
UNION ALL SELECT 'refunds' WHERE EXISTS (SELECT 1 FROM refunds WHERE retry_at_us > 0 AND retry_at_us <= :now_us)
UNION ALL SELECT 'cancellations' WHERE EXISTS
  (SELECT 1 FROM cancellations WHERE job_state = 'running' AND next_at_us <= :now_us)
UNION ALL SELECT 'buyer messages' WHERE EXISTS
  (SELECT 1 FROM buyer_messages WHERE message_state = 'sending' AND next_at_us <= :now_us)
UNION ALL SELECT 'draws' WHERE EXISTS (SELECT 1 FROM presales WHERE event_id > '' AND presale_state = 'drawing')
UNION ALL SELECT 'notices' WHERE EXISTS
  (SELECT 1 FROM sale_signups WHERE purpose = 'notice' AND signup_state = 'confirmed')
UNION ALL SELECT 'deliveries ' || r.kind FROM :rows WHERE EXISTS (SELECT 1 FROM deliveries AS d
  WHERE d.kind = r.kind AND d.delivery_state = 'waiting' AND d.leased_until_us <= :now_us AND d.next_at_us <= :now_us)
