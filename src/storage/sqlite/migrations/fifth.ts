/** Adds attachments of conversations. Their texts have their own table, so that lists do not read them. */
export const fifth = `
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
`
