/**
 * Adds the inputs and vectors of jobs, a unique index of workspaces by database, and an index of conversations by
 * principal and agent.
 *
 * If several workspaces already use the same database, only the first one gets a `databaseKey`.
 */
export const thirdMigration = `
ALTER TABLE workspaces ADD COLUMN databaseKey GENERATED ALWAYS AS (body ->> '$.databaseKey') VIRTUAL;
UPDATE workspaces SET body = json_set(body, '$.databaseKey', json_array(body ->> '$.url', body ->> '$.keyspace') || '')
WHERE url IS NOT NULL AND ordinal IN (
  SELECT min(ordinal) FROM workspaces GROUP BY body ->> '$.url', body ->> '$.keyspace'
);
CREATE UNIQUE INDEX workspaces_unique_database ON workspaces (databaseKey);
DROP INDEX workspaces_byUrl;

ALTER TABLE jobs ADD COLUMN endedAt GENERATED ALWAYS AS (body ->> '$.endedAt') VIRTUAL;
CREATE INDEX jobs_byEnd ON jobs (endedAt);
CREATE INDEX jobs_byKnowledgeBase ON jobs (workspaceId, knowledgeBaseId);

CREATE TABLE job_inputs (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  jobId GENERATED ALWAYS AS (body ->> '$.jobId') VIRTUAL
);
CREATE UNIQUE INDEX job_inputs_key ON job_inputs (workspaceId, jobId);
CREATE INDEX job_inputs_byWorkspace ON job_inputs (workspaceId, jobId);
CREATE INDEX job_inputs_byKnowledgeBase ON job_inputs (workspaceId, knowledgeBaseId);

CREATE TABLE job_batches (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  jobId GENERATED ALWAYS AS (body ->> '$.jobId') VIRTUAL,
  start GENERATED ALWAYS AS (body ->> '$.start') VIRTUAL
);
CREATE UNIQUE INDEX job_batches_key ON job_batches (workspaceId, jobId, start);
CREATE INDEX job_batches_byWorkspace ON job_batches (workspaceId);
CREATE INDEX job_batches_byKnowledgeBase ON job_batches (workspaceId, knowledgeBaseId);
CREATE INDEX job_batches_byJob ON job_batches (workspaceId, jobId, start);

CREATE INDEX conversations_byAgentOwner
  ON conversations (workspaceId, agentId, ownerPrincipalId, createdAt, conversationId);
`
