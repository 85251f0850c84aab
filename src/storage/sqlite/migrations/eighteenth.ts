import { tagsOfBase } from './fifteenth.ts'
import { tagsOf } from './thirteenth.ts'

/** SQL query for the complete tags of deleted documents. */
export const deletedDocumentTagsQuery = `SELECT deleted_documents.workspaceId, tags.value AS tag, deleted_documents.ordinal
    FROM deleted_documents, json_each((SELECT json_group_array(tag) FROM (${tagsOf('deleted_documents')}))) AS tags
    WHERE json_valid(deleted_documents.body)
      AND deleted_documents.workspaceId IS NOT NULL AND deleted_documents.knowledgeBaseId IS NOT NULL`

const addTags = `INSERT INTO deleted_documents_tags SELECT NEW.workspaceId, tag, NEW.ordinal FROM (${tagsOf('NEW')});`
const removeTags = `DELETE FROM deleted_documents_tags WHERE workspaceId = OLD.workspaceId AND ordinal = OLD.ordinal
    AND tag IN (${tagsOf('OLD')});`
const hasKey = 'NEW.workspaceId IS NOT NULL AND NEW.knowledgeBaseId IS NOT NULL'

/**
 * Adds deleted documents that can be restored, with the tags of documents, and their chunks. The generated columns of chunks are
 * stored before the body, so that deletions do not read it.
 */
export const eighteenthMigration = `
CREATE TABLE deleted_documents (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  documentId GENERATED ALWAYS AS (body ->> '$.documentId') VIRTUAL,
  entryId GENERATED ALWAYS AS (body ->> '$.entryId') VIRTUAL,
  deletedAt GENERATED ALWAYS AS (body ->> '$.deletedAt') VIRTUAL
);
CREATE UNIQUE INDEX deleted_documents_key ON deleted_documents (workspaceId, entryId);
CREATE INDEX deleted_documents_byWorkspace ON deleted_documents (workspaceId);
CREATE INDEX deleted_documents_byKnowledgeBase ON deleted_documents (workspaceId, knowledgeBaseId);
CREATE INDEX deleted_documents_byDocument ON deleted_documents (workspaceId, knowledgeBaseId, documentId);
CREATE INDEX deleted_documents_byTime ON deleted_documents (deletedAt);

CREATE TABLE deleted_documents_tags (
  workspaceId TEXT NOT NULL,
  tag TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (workspaceId, tag, ordinal)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER deleted_document_tags_inserted AFTER INSERT ON deleted_documents WHEN ${hasKey} BEGIN ${addTags}
END;
CREATE TRIGGER knowledge_base_deleted_document_tags_deleted AFTER DELETE ON knowledge_bases
WHEN OLD.workspaceId IS NOT NULL AND OLD.knowledgeBaseId IS NOT NULL BEGIN
  DELETE FROM deleted_documents_tags WHERE ${tagsOfBase('OLD')};
END;
CREATE TRIGGER deleted_document_tags_deleted AFTER DELETE ON deleted_documents
WHEN EXISTS (SELECT 1 FROM deleted_documents_tags WHERE ${tagsOfBase('OLD')}) BEGIN ${removeTags}
END;
CREATE TRIGGER deleted_document_tags_updated AFTER UPDATE OF body ON deleted_documents WHEN ${hasKey} BEGIN ${removeTags} ${addTags}
END;

CREATE TABLE deleted_chunks (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  workspaceId TEXT GENERATED ALWAYS AS (body ->> '$.workspaceId') STORED,
  knowledgeBaseId TEXT GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') STORED,
  entryId TEXT GENERATED ALWAYS AS (body ->> '$.entryId') STORED,
  start INTEGER GENERATED ALWAYS AS (body ->> '$.start') STORED,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX deleted_chunks_key ON deleted_chunks (workspaceId, entryId, start);
CREATE INDEX deleted_chunks_byWorkspace ON deleted_chunks (workspaceId);
CREATE INDEX deleted_chunks_byKnowledgeBase ON deleted_chunks (workspaceId, knowledgeBaseId);
CREATE INDEX deleted_chunks_byEntry ON deleted_chunks (workspaceId, entryId, start);
`
