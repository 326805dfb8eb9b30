-- name: add_keys(name text, sealed text, now_us int)
-- The first server's keys are stored; later servers read them.
INSERT INTO platform_keys AS k (name, sealed, changed_at_us)
SELECT r.name, r.sealed, r.now_us FROM :rows WHERE true ON CONFLICT (name) DO NOTHING
RETURNING k.name

-- name: swap_keys(name text, was text, sealed text, now_us int)
UPDATE platform_keys AS k SET sealed = r.sealed, changed_at_us = r.now_us
FROM :rows WHERE k.name = r.name AND k.sealed = r.was
RETURNING k.name

-- name: keys_by_name() :name text
SELECT sealed FROM platform_keys WHERE name = :name
