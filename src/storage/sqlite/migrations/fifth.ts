/**
 * Adds images of messages, and an index of agents by name. The computed columns of images are stored and precede the body,
 * so that listing and deleting images reads none of their data.
 */
export const fifth = `
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
`
