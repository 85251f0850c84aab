/** Adds sign-ins to MCP servers, and the fields of MCP servers that say how callers sign in. */
export const fifth = `
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
