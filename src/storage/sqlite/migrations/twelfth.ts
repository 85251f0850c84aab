/**
 * Adds a table of access versions. Earlier changes have no versions, so a store with workspaces gets a setting with the time
 * from which versions are complete.
 */
export const twelfthMigration = `
CREATE TABLE access_versions (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  versionId GENERATED ALWAYS AS (body ->> '$.versionId') VIRTUAL,
  kind GENERATED ALWAYS AS (body ->> '$.kind') VIRTUAL,
  targetId GENERATED ALWAYS AS (body ->> '$.targetId') VIRTUAL,
  until GENERATED ALWAYS AS (body ->> '$.until') VIRTUAL
);
CREATE UNIQUE INDEX access_versions_key ON access_versions (workspaceId, versionId);
CREATE INDEX access_versions_byWorkspace ON access_versions (workspaceId);
CREATE INDEX access_versions_byKind ON access_versions (workspaceId, kind, until);
CREATE INDEX access_versions_byTarget ON access_versions (workspaceId, kind, targetId, until);
CREATE INDEX access_versions_byTime ON access_versions (until);

INSERT INTO settings (version, body)
  SELECT 1, json_object('name', 'access-versions-start', 'value', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
  WHERE EXISTS (SELECT 1 FROM workspaces);
`
