/**
 * Adds the vectors that new records of a space got from the records that they replaced. They are not searched until they are staged.
 */
export const sixteenthMigration = `
CREATE TABLE carried_vector (
  record INTEGER NOT NULL,
  space INTEGER NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (record, space)
) WITHOUT ROWID;
`
