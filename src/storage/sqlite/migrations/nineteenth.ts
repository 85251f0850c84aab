/** Adds the lines that are embedded between the title and the text of a record. Existing records have none, and keep their vectors. */
export const nineteenthMigration = `
ALTER TABLE record ADD COLUMN context TEXT;
`
