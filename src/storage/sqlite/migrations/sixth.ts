import { postingsSchema } from '../postings/schema.ts'

/**
 * Adds the posting store, and the language of each collection.
 *
 * `full_text` is 1 if a collection has a full-text table (`fts_<collection>`) of an earlier schema. Searches use this table
 * until the posting index is complete. `reindex` is 1 if the posting index is missing, or was built for another language or
 * analyzer version.
 */
export const sixthMigration = `
${postingsSchema}
ALTER TABLE collection ADD COLUMN language TEXT;
ALTER TABLE collection ADD COLUMN full_text INTEGER NOT NULL DEFAULT 0;
ALTER TABLE collection ADD COLUMN reindex INTEGER NOT NULL DEFAULT 0;
CREATE INDEX collection_reindex ON collection (id) WHERE reindex = 1;
UPDATE collection SET full_text = 1, reindex = 1 WHERE lexical = 1;
UPDATE collection SET language = (
  SELECT body ->> '$.language' FROM knowledge_bases
    WHERE workspaceId = collection.workspace_id AND vectorCollection = collection.name
);
`
