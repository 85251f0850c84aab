/** Adds indexes to sort and filter the audit trail, and to find API keys by the public prefix of their token. */
export const secondMigration = `
DROP INDEX audit_byAction;
ALTER TABLE audit ADD COLUMN at GENERATED ALWAYS AS (body ->> '$.at') VIRTUAL;
ALTER TABLE audit ADD COLUMN refusal GENERATED ALWAYS AS (body ->> '$.refusal') VIRTUAL;
CREATE INDEX audit_byRefusal ON audit (refusal);
CREATE INDEX audit_byTime ON audit (at);
CREATE INDEX audit_byActionTime ON audit (action, at);
CREATE INDEX audit_byWorkspaceTime ON audit (workspaceId, at);
CREATE INDEX audit_byWorkspaceActionTime ON audit (workspaceId, action, at);

CREATE INDEX api_keys_byPrefix ON api_keys (prefix);
`
