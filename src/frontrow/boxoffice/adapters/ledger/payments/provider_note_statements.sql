-- name: add_provider_notes(provider text, ref text, name text, account text, their_ref text, body text, at_us int)
-- A note that is there already stays as it is: left out of the answer.
INSERT INTO provider_notes (provider, ref, name, account, their_ref, body, at_us)
SELECT r.provider, r.ref, r.name, r.account, r.their_ref, r.body, r.at_us FROM :rows WHERE true
ON CONFLICT DO NOTHING
RETURNING name

-- name: provider_notes_of(provider text, ref text)
SELECT n.ref, n.name, n.account, n.their_ref, n.body, n.at_us
FROM :rows CROSS JOIN provider_notes AS n WHERE n.provider = r.provider AND n.ref = r.ref
ORDER BY n.ref, n.at_us, n.name

-- name: provider_note_by_their_ref() :provider text :their_ref text
SELECT ref FROM provider_notes WHERE provider = :provider AND their_ref = :their_ref AND their_ref <> '' LIMIT 1

-- name: provider_objects() :provider text :account text :since_us int :before_us int :before_ref text :limit int
-- Objects by the note that says they were made, the newest first.
SELECT ref FROM provider_notes
WHERE name = 'made' AND provider = :provider AND account = :account AND at_us >= :since_us
  AND (at_us < :before_us OR (at_us = :before_us AND ref < :before_ref))
ORDER BY at_us DESC, ref DESC LIMIT :limit
