/** Maximum number of metadata entries of a document with tags of their own. */
const TAGGED_ENTRIES_MAX = 100

/** SQL condition for a metadata entry with which a policy can compare a text, a whole number, a truth value or null. */
const isTaggable = `key NOT GLOB '*[^A-Za-z0-9_]*' AND type IN ('text', 'integer', 'true', 'false', 'null')`

/**
 * Returns an SQL query for the tags of a document, each once.
 *
 * @param document  name of the row
 */
export function tagsOf(document: string): string {
  const metadata = `json_each(${document}.body, '$.metadata')`
  return `SELECT ${document}.knowledgeBaseId || '/' || condition AS tag FROM (
      SELECT 'visible_to=' || value AS condition FROM json_each(${document}.body, '$.visibleTo') WHERE type = 'text'
      UNION SELECT '$owner=' || (${document}.body ->> '$.ownerPrincipalId')
      UNION SELECT * FROM (
        SELECT key || '=' || CASE WHEN type IN ('text', 'integer') THEN value ELSE type END FROM ${metadata}
          WHERE ${isTaggable} LIMIT ${TAGGED_ENTRIES_MAX}
      )
      UNION SELECT '*' WHERE (SELECT count(*) FROM ${metadata} WHERE ${isTaggable}) > ${TAGGED_ENTRIES_MAX}
    ) WHERE length(condition) <= 200`
}

/** Returns an SQL condition for the jobs of a document. */
function jobsOf(document: string): string {
  return `jobs.workspaceId = ${document}.workspaceId AND jobs.knowledgeBaseId = ${document}.knowledgeBaseId
    AND jobs.documentId = ${document}.documentId`
}

/** Returns an SQL condition for the document of a job. */
function documentOf(job: string): string {
  return `documents.workspaceId = ${job}.workspaceId AND documents.knowledgeBaseId = ${job}.knowledgeBaseId
      AND documents.documentId = ${job}.documentId`
}

/** Fields of a document from which its tags are computed. */
const facts = ['$.visibleTo', '$.ownerPrincipalId', '$.metadata']

const addTags = `
  INSERT INTO documents_tags SELECT NEW.workspaceId, tag, NEW.ordinal FROM (${tagsOf('NEW')});
  INSERT INTO jobs_tags SELECT NEW.workspaceId, tag, jobs.ordinal FROM (${tagsOf('NEW')}), jobs WHERE ${jobsOf('NEW')};`

/** SQL statements that remove the tags of a deleted document. */
export const removeTags = `
  DELETE FROM documents_tags WHERE workspaceId = OLD.workspaceId AND ordinal = OLD.ordinal
    AND tag IN (${tagsOf('OLD')});
  DELETE FROM jobs_tags WHERE workspaceId = OLD.workspaceId AND tag IN (${tagsOf('OLD')})
    AND ordinal IN (SELECT ordinal FROM jobs WHERE ${jobsOf('OLD')});`

/** SQL queries for the complete content of the tables of tags, by table. */
export const tagQueries = {
  documents_tags: `SELECT documents.workspaceId, tags.value AS tag, documents.ordinal
    FROM documents, json_each((SELECT json_group_array(tag) FROM (${tagsOf('documents')}))) AS tags
    WHERE json_valid(documents.body) AND documents.workspaceId IS NOT NULL AND documents.knowledgeBaseId IS NOT NULL`,
  jobs_tags: `SELECT documents_tags.workspaceId, documents_tags.tag, jobs.ordinal
    FROM documents_tags JOIN documents USING (ordinal) JOIN jobs ON ${jobsOf('documents')}
  UNION ALL SELECT workspaceId, knowledgeBaseId, ordinal FROM jobs
    WHERE workspaceId IS NOT NULL AND knowledgeBaseId IS NOT NULL`,
} as const

/** SQL statements that remove the tags of a deleted job. */
export const removeJobTags = `
  DELETE FROM jobs_tags
    WHERE workspaceId = OLD.workspaceId AND tag = OLD.knowledgeBaseId AND ordinal = OLD.ordinal;
  DELETE FROM jobs_tags WHERE workspaceId = OLD.workspaceId AND ordinal = OLD.ordinal AND tag IN (
    SELECT tags.value
      FROM documents, json_each((SELECT json_group_array(tag) FROM (${tagsOf('documents')}))) AS tags
      WHERE ${documentOf('OLD')});`

const hasKey = 'NEW.workspaceId IS NOT NULL AND NEW.knowledgeBaseId IS NOT NULL'

/**
 * Adds tags of documents and jobs, so that the list of a caller with restricted access does not read the rows that are hidden
 * from it. Triggers maintain them. `src/access/policy/document-tags.ts` selects the tags of a caller.
 *
 * A tag of a document consists of the ID of the knowledge base, a slash and a condition that the document satisfies: a name in
 * `visibleTo`, the owner, or a metadata entry. A condition of more than 200 characters has no tag. If there are more than 100
 * metadata entries, the other ones have the tag `*`. A job has the tags of its document, and the ID of its knowledge base.
 */
export const thirteenthMigration = `
${Object.keys(tagQueries)
  .map(
    table => `CREATE TABLE ${table} (
  workspaceId TEXT NOT NULL,
  tag TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (workspaceId, tag, ordinal)
) STRICT, WITHOUT ROWID;`,
  )
  .join('\n')}

INSERT INTO documents_tags ${tagQueries.documents_tags};
INSERT INTO jobs_tags ${tagQueries.jobs_tags};

CREATE TRIGGER document_tags_inserted AFTER INSERT ON documents WHEN ${hasKey} BEGIN${addTags}
END;
CREATE TRIGGER document_tags_deleted AFTER DELETE ON documents BEGIN${removeTags}
END;
CREATE TRIGGER document_tags_updated AFTER UPDATE OF body ON documents
WHEN ${hasKey} AND (${facts.map(field => `OLD.body -> '${field}' IS NOT NEW.body -> '${field}'`).join(' OR ')}) BEGIN${removeTags}${addTags}
END;
CREATE TRIGGER job_tags_inserted AFTER INSERT ON jobs WHEN ${hasKey} BEGIN
  INSERT INTO jobs_tags VALUES (NEW.workspaceId, NEW.knowledgeBaseId, NEW.ordinal);
  INSERT INTO jobs_tags SELECT NEW.workspaceId, tags.value, NEW.ordinal
    FROM documents, json_each((SELECT json_group_array(tag) FROM (${tagsOf('documents')}))) AS tags
    WHERE ${documentOf('NEW')};
END;
CREATE TRIGGER job_tags_deleted AFTER DELETE ON jobs BEGIN${removeJobTags}
END;
`
