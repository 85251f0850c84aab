/** Adds what the policy audit needs: its records in order of time, to delete old ones, and by decision. */
export const eleventhMigration = `
ALTER TABLE policy_audit ADD COLUMN ts GENERATED ALWAYS AS (body ->> '$.ts') VIRTUAL;
ALTER TABLE policy_audit ADD COLUMN decision GENERATED ALWAYS AS (body ->> '$.decision') VIRTUAL;
CREATE INDEX policy_audit_byTime ON policy_audit (ts);
CREATE INDEX policy_audit_byDecision ON policy_audit (workspaceId, decision);
`
