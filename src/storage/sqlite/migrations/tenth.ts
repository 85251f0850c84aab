/**
 * Adds quantized vectors, so that the first search after a start does not have to read and quantize the exact vectors.
 *
 * Each row contains the quantized vectors of a range of records: from the first record after `through` of the previous row,
 * up to its own `through`. `table_name` is the table with the exact vectors, and `size` is the number of vectors in the row.
 * Vectors of records that are deleted later remain in the row.
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
