/** Adds the query log: searches in knowledge bases that record them. */
export const fourteenthMigration = `
CREATE TABLE query_log (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  searchId GENERATED ALWAYS AS (body ->> '$.searchId') VIRTUAL,
  caller GENERATED ALWAYS AS (body ->> '$.caller') VIRTUAL,
  at GENERATED ALWAYS AS (body ->> '$.at') VIRTUAL
);
CREATE UNIQUE INDEX query_log_key ON query_log (workspaceId, searchId);
CREATE INDEX query_log_byWorkspace ON query_log (workspaceId);
CREATE INDEX query_log_byKnowledgeBase ON query_log (workspaceId, knowledgeBaseId, at);
CREATE INDEX query_log_byCaller ON query_log (workspaceId, knowledgeBaseId, caller, at);
CREATE INDEX query_log_byTime ON query_log (at);
`
