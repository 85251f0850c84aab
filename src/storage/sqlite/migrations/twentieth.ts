/** Adds an index of documents by content hash, with which a search finds knowledge bases with the same document. */
export const twentiethMigration = `
ALTER TABLE documents ADD COLUMN contentHash GENERATED ALWAYS AS (body ->> '$.contentHash') VIRTUAL;
CREATE INDEX documents_byContentHash ON documents (workspaceId, contentHash, knowledgeBaseId);
`
