/** Adds an index of jobs by status and workspace, so that workspaces take turns. */
export const seventeenthMigration = `
CREATE INDEX jobs_byTurn ON jobs (status, workspaceId);
`
