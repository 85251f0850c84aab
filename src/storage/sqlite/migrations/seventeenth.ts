/**
 * Adds the lines that are embedded between the title and the text of a record. Records of earlier versions have none, as their vectors.
 */
export const seventeenthMigration = `
ALTER TABLE record ADD COLUMN context TEXT;
`
