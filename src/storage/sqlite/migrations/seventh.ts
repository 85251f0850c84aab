/**
 * Adds what the statistics of a collection need, so that they do not read its records: `text_bytes` and `payload_bytes`
 * are the lengths of the titles and texts, and of the payloads, in UTF-8. `changed_at` is the time of the last change of
 * a record in milliseconds since 1970; null if it is not known.
 */
export const seventhMigration = `
ALTER TABLE collection ADD COLUMN text_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE collection ADD COLUMN payload_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE collection ADD COLUMN changed_at INTEGER;
UPDATE collection SET (text_bytes, payload_bytes) = (
  SELECT coalesce(sum(coalesce(octet_length(title), 0) + coalesce(octet_length(text), 0)), 0), coalesce(sum(octet_length(payload)), 0)
    FROM record WHERE record.collection = collection.id
);
`
