/**
 * Adds versions of questions. Adds to conversations the time of the last activity, and the time when the model first
 * read text from documents or tools.
 */
export const fourthMigration = `
CREATE TABLE message_versions (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  conversationId GENERATED ALWAYS AS (body ->> '$.conversationId') VIRTUAL,
  messageId GENERATED ALWAYS AS (body ->> '$.messageId') VIRTUAL,
  messageTs GENERATED ALWAYS AS (body ->> '$.messageTs') VIRTUAL,
  versionId GENERATED ALWAYS AS (body ->> '$.versionId') VIRTUAL,
  questionId GENERATED ALWAYS AS (body ->> '$.questionId') VIRTUAL
);
CREATE UNIQUE INDEX message_versions_key ON message_versions (workspaceId, conversationId, messageId);
CREATE INDEX message_versions_byWorkspace ON message_versions (workspaceId);
CREATE INDEX message_versions_byVersion
  ON message_versions (workspaceId, conversationId, versionId, messageTs, messageId);
CREATE INDEX message_versions_byQuestion
  ON message_versions (workspaceId, conversationId, questionId, messageTs, messageId);

ALTER TABLE messages ADD COLUMN questionId GENERATED ALWAYS AS (body ->> '$.questionId') VIRTUAL;
CREATE INDEX messages_byQuestion ON messages (workspaceId, conversationId, questionId, messageTs, messageId);

ALTER TABLE conversations ADD COLUMN lastActivityAt GENERATED ALWAYS AS (body ->> '$.lastActivityAt') VIRTUAL;
UPDATE conversations SET body = json_set(
  body,
  '$.lastActivityAt', coalesce(
    (SELECT max(m.messageTs) FROM messages AS m
      WHERE m.workspaceId = conversations.workspaceId AND m.conversationId = conversations.conversationId),
    createdAt
  ),
  '$.untrustedSince', (
    SELECT min(m.messageTs) FROM messages AS m
      WHERE m.workspaceId = conversations.workspaceId AND m.conversationId = conversations.conversationId
        AND (m.body ->> '$.role' = 'tool' OR m.body ->> '$.metadata.context_chunks' IS NOT NULL)
  )
);
CREATE INDEX conversations_byActivity ON conversations (workspaceId, lastActivityAt, conversationId);
CREATE INDEX conversations_byAgentActivity
  ON conversations (workspaceId, agentId, lastActivityAt, conversationId);
CREATE INDEX conversations_byOwnerActivity
  ON conversations (workspaceId, ownerPrincipalId, lastActivityAt, conversationId);
CREATE INDEX conversations_byAgentOwnerActivity
  ON conversations (workspaceId, agentId, ownerPrincipalId, lastActivityAt, conversationId);
`
