/**
 * Moves the vector space of each collection to a row of `vector_space`, so that a collection can have several. The vectors
 * of a generation are in the table `vec_<id of the space>_<generation>`. The space of an earlier collection gets the ID of
 * the collection, so its tables keep their names.
 *
 * `vectors` is the number of vectors in the current generation. `filled_through` is the highest record number whose vector
 * was added to the current generation after the record was stored.
 */
export const eighthMigration = `
CREATE TABLE vector_space (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection INTEGER NOT NULL,
  name TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  metric TEXT NOT NULL,
  fitted INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  vectors INTEGER NOT NULL DEFAULT 0,
  filled_through INTEGER NOT NULL DEFAULT 0,
  unfitted INTEGER NOT NULL DEFAULT 0,
  fitted_records INTEGER NOT NULL DEFAULT 0,
  fitted_through INTEGER NOT NULL DEFAULT 0,
  staging INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL DEFAULT 0,
  UNIQUE (collection, name)
) STRICT;
INSERT INTO vector_space (id, collection, name, dimension, metric, fitted, generation, vectors, unfitted, fitted_records,
    fitted_through, staging, lease_owner, lease_until)
  SELECT id, id, 'default', dimension, metric, fitted, generation, records, unfitted, fitted_records, fitted_through, staging,
    lease_owner, lease_until FROM collection;
CREATE INDEX vector_space_unfitted ON vector_space (collection) WHERE fitted = 1 AND unfitted > 0;
DROP INDEX collection_unfitted;
${[
  'dimension',
  'metric',
  'fitted',
  'generation',
  'unfitted',
  'fitted_records',
  'fitted_through',
  'staging',
  'lease_owner',
  'lease_until',
]
  .map(column => `ALTER TABLE collection DROP COLUMN ${column};`)
  .join('\n')}
`
