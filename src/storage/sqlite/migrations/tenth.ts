/**
 * Adds quantized vectors, so that the first search after a start does not read and quantize the exact vectors. `table_name`
 * is the table with the exact vectors. A row contains `size` of them, in ascending order of their records: those that were
 * stored when it was written, after the record `through` of the previous row up to its own `through`. Records that were
 * deleted since then remain in it.
 */
export const tenthMigration = `
CREATE TABLE quantized_vectors (
  table_name TEXT NOT NULL,
  through INTEGER NOT NULL,
  first INTEGER NOT NULL,
  size INTEGER NOT NULL,
  format INTEGER NOT NULL,
  facts BLOB NOT NULL,
  levels BLOB NOT NULL,
  PRIMARY KEY (table_name, through)
) STRICT;
`
