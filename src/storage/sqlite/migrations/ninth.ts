import { segmentBytesSchema } from '../postings/schema.ts'

/**
 * Adds what lists and statistics need, so that they do not count rows: the bytes of each segment of postings, and the
 * number of documents of each knowledge base, which triggers maintain. A knowledge base without documents has no row.
 */
export const ninthMigration = `
${segmentBytesSchema}
UPDATE posting_segment SET bytes = (
  SELECT coalesce(sum(octet_length(data) + octet_length(first_term)), 0) FROM posting_block WHERE segment = posting_segment.id
);

CREATE TABLE document_count (
  workspaceId TEXT NOT NULL,
  knowledgeBaseId TEXT NOT NULL,
  documents INTEGER NOT NULL,
  PRIMARY KEY (workspaceId, knowledgeBaseId)
) STRICT, WITHOUT ROWID;
INSERT INTO document_count
  SELECT workspaceId, knowledgeBaseId, count(*) FROM documents
    WHERE workspaceId IS NOT NULL AND knowledgeBaseId IS NOT NULL GROUP BY workspaceId, knowledgeBaseId;
CREATE TRIGGER document_inserted AFTER INSERT ON documents
WHEN NEW.workspaceId IS NOT NULL AND NEW.knowledgeBaseId IS NOT NULL BEGIN
  INSERT INTO document_count VALUES (NEW.workspaceId, NEW.knowledgeBaseId, 1)
    ON CONFLICT DO UPDATE SET documents = documents + 1;
END;
CREATE TRIGGER document_deleted AFTER DELETE ON documents BEGIN
  UPDATE document_count SET documents = documents - 1
    WHERE workspaceId = OLD.workspaceId AND knowledgeBaseId = OLD.knowledgeBaseId;
  DELETE FROM document_count
    WHERE workspaceId = OLD.workspaceId AND knowledgeBaseId = OLD.knowledgeBaseId AND documents <= 0;
END;
`
