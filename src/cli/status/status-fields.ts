import { callerName, permissionSummary } from '../sign-in/identity.ts'
import { expirationField } from '../sign-in/notes.ts'
import { count, counted, type Field } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import type { Counts, Status, StatusView } from './status.ts'

/** Returns the fields of a status to show. */
export function statusFields({ status, noWorkspace, tokens }: StatusView): Record<string, Field> {
  const { runtime, workspace, counts, jobs, you } = status
  return {
    runtime: `${runtime.url ?? 'in this process'}, version ${plainLine(runtime.version)}, ${counted(runtime.workspaces, 'workspace')}`,
    data: runtime.dataDir,
    workspace: workspace
      ? `${plainLine(workspace.name)} (${workspace.kind})`
      : noWorkspace && plainLine(noWorkspace.message),
    knowledge: counts && knowledge(counts),
    agents: counts && count(counts.agents),
    jobs: jobs && jobsLine(jobs),
    you: you ? `${callerName(you)}, ${permissionSummary(you)}` : 'anonymous; no credential is sent',
    ends: expirationField(you, tokens),
  }
}

function knowledge({ knowledgeBases, documents, chunks, complete }: Counts): string {
  const held = `${counted(documents, 'document')}, ${counted(chunks, 'chunk')}`
  return `${counted(knowledgeBases, 'knowledge base')}, ${complete ? '' : 'at least '}${held}`
}

/** Omits jobs that have succeeded. */
function jobsLine({ running, pending, failed }: NonNullable<Status['jobs']>): string {
  const told = [
    running > 0 && `${count(running)} running`,
    pending > 0 && `${count(pending)} waiting`,
    failed > 0 && `${count(failed)} failed`,
  ].filter(Boolean)
  return told.length === 0 ? 'none running' : told.join(', ')
}
