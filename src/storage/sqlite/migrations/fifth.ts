/** Adds an index of agents by name, by which requests of OpenAI clients name them. */
export const fifth = `
ALTER TABLE agents ADD COLUMN name GENERATED ALWAYS AS (body ->> '$.name') VIRTUAL;
CREATE INDEX agents_byName ON agents (workspaceId, name);
`
