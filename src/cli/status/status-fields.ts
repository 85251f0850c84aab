import { callerName, permissionSummary } from '../sign-in/identity.ts'
import { expirationField } from '../sign-in/notes.ts'
import { type Field, formatCount, formatCounted } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Counts, Status, StatusView } from './status.ts'

/** Returns the fields to show for a status. */
export function statusFields({ status, noWorkspace, tokens }: StatusView): Record<string, Field> {
  const { runtime, workspace, counts, jobs, you } = status
  return {
    runtime: `${runtime.url ?? 'in this process'}, version ${plainLine(runtime.version)}, ${formatCounted(runtime.workspaces, 'workspace')}`,
    data: runtime.dataDir,
    workspace: workspace
      ? `${plainLine(workspace.name)} (${workspace.kind})`
      : noWorkspace && plainLine(noWorkspace.message),
    knowledge: counts && formatCounts(counts),
    agents: counts && formatCount(counts.agents),
    jobs: jobs && formatJobs(jobs),
    you: you ? `${callerName(you)}, ${permissionSummary(you)}` : 'anonymous; no credential is sent',
    ends: expirationField(you, tokens),
  }
}

function formatCounts({ knowledgeBases, documents, chunks, complete }: Counts): string {
  const contents = `${formatCounted(documents, 'document')}, ${formatCounted(chunks, 'chunk')}`
  return `${formatCounted(knowledgeBases, 'knowledge base')}, ${complete ? '' : 'at least '}${contents}`
}

/** Formats the numbers of jobs that have not succeeded. */
function formatJobs({ running, pending, failed }: NonNullable<Status['jobs']>): string {
  const parts = [
    running > 0 && `${formatCount(running)} running`,
    pending > 0 && `${formatCount(pending)} waiting`,
    failed > 0 && `${formatCount(failed)} failed`,
  ].filter(Boolean)
  return parts.length === 0 ? 'none running' : parts.join(', ')
}
