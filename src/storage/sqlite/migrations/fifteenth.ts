import { removeJobTags, removeTags } from './thirteenth.ts'

/** Returns an SQL condition for tags of the documents of a knowledge base in a table. */
export function tagsOfBase(base: string): string {
  // "0" is the character after the slash with which all tags of documents continue.
  return `workspaceId = ${base}.workspaceId AND tag >= ${base}.knowledgeBaseId AND tag < ${base}.knowledgeBaseId || '0'`
}

/**
 * Removes all tags of a knowledge base at once when it is deleted, before its documents and jobs are deleted. To compute the
 * tags of each document again would block other writers for seconds.
 */
export const fifteenthMigration = `
CREATE TRIGGER knowledge_base_tags_deleted AFTER DELETE ON knowledge_bases
WHEN OLD.workspaceId IS NOT NULL AND OLD.knowledgeBaseId IS NOT NULL BEGIN
  DELETE FROM documents_tags WHERE ${tagsOfBase('OLD')};
  DELETE FROM jobs_tags WHERE ${tagsOfBase('OLD')};
END;
DROP TRIGGER document_tags_deleted;
CREATE TRIGGER document_tags_deleted AFTER DELETE ON documents
WHEN EXISTS (SELECT 1 FROM documents_tags WHERE ${tagsOfBase('OLD')}) BEGIN${removeTags}
END;
DROP TRIGGER job_tags_deleted;
CREATE TRIGGER job_tags_deleted AFTER DELETE ON jobs
WHEN EXISTS (SELECT 1 FROM jobs_tags WHERE ${tagsOfBase('OLD')}) BEGIN${removeJobTags}
END;
`
