/**
 * Adds message images, conversation attachments, sign-ins to MCP servers, and an index of agents by name.
 *
 * Lists must not read image data or attachment texts. Therefore, the generated columns of `message_images` are stored
 * before the body, and attachment texts have a separate table.
 */
export const fifthMigration = `
ALTER TABLE agents ADD COLUMN name GENERATED ALWAYS AS (body ->> '$.name') VIRTUAL;
CREATE INDEX agents_byName ON agents (workspaceId, name);

CREATE TABLE message_images (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  workspaceId TEXT GENERATED ALWAYS AS (body ->> '$.workspaceId') STORED,
  conversationId TEXT GENERATED ALWAYS AS (body ->> '$.conversationId') STORED,
  messageId TEXT GENERATED ALWAYS AS (body ->> '$.messageId') STORED,
  imageIndex INTEGER GENERATED ALWAYS AS (body ->> '$.imageIndex') STORED,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX message_images_key ON message_images (workspaceId, conversationId, messageId, imageIndex);
CREATE INDEX message_images_byWorkspace ON message_images (workspaceId);
CREATE INDEX message_images_byMessage ON message_images (workspaceId, conversationId, messageId, imageIndex);

CREATE TABLE attachments (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  conversationId GENERATED ALWAYS AS (body ->> '$.conversationId') VIRTUAL,
  attachmentId GENERATED ALWAYS AS (body ->> '$.attachmentId') VIRTUAL
);
CREATE UNIQUE INDEX attachments_key ON attachments (workspaceId, conversationId, attachmentId);
CREATE INDEX attachments_byWorkspace ON attachments (workspaceId);
CREATE INDEX attachments_byConversation ON attachments (workspaceId, conversationId);

CREATE TABLE attachment_texts (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  conversationId GENERATED ALWAYS AS (body ->> '$.conversationId') VIRTUAL,
  attachmentId GENERATED ALWAYS AS (body ->> '$.attachmentId') VIRTUAL
);
CREATE UNIQUE INDEX attachment_texts_key ON attachment_texts (workspaceId, conversationId, attachmentId);
CREATE INDEX attachment_texts_byWorkspace ON attachment_texts (workspaceId);
CREATE INDEX attachment_texts_byConversation ON attachment_texts (workspaceId, conversationId);

CREATE TABLE mcp_sign_ins (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  mcpServerId GENERATED ALWAYS AS (body ->> '$.mcpServerId') VIRTUAL,
  subject GENERATED ALWAYS AS (body ->> '$.subject') VIRTUAL
);
CREATE UNIQUE INDEX mcp_sign_ins_key ON mcp_sign_ins (workspaceId, mcpServerId, subject);
CREATE INDEX mcp_sign_ins_byWorkspace ON mcp_sign_ins (workspaceId);
CREATE INDEX mcp_sign_ins_byServer ON mcp_sign_ins (workspaceId, mcpServerId, subject);

UPDATE mcp_servers SET body = json_set(
  body,
  '$.authType', 'credential',
  '$.oauthClientId', NULL,
  '$.oauthClientSecretRef', NULL,
  '$.oauthScopes', NULL
);
`
