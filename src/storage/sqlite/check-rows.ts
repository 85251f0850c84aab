import type { AnyTable } from '../rows.ts'
import { tables } from '../tables.ts'
import type { ProblemSearch } from './check-search.ts'

/** A column with the id of a parent row in the same workspace, or null. */
interface Reference {
  readonly child: AnyTable
  readonly column: string
  readonly parent: AnyTable
}

/** Tables whose rows remain when their workspace is deleted. */
const outliving: readonly AnyTable[] = [tables.workspaces, tables.settings, tables.audit]

const ofWorkspaces: Reference[] = Object.values<AnyTable>(tables)
  .filter(table => !outliving.includes(table))
  .map(child => ({ child, column: 'workspaceId', parent: tables.workspaces }))

const withinWorkspaces: Reference[] = [
  ...naming(tables.knowledgeBases, 'knowledgeBaseId', [
    tables.documents,
    tables.knowledgeFilters,
    tables.jobs,
    tables.jobInputs,
    tables.jobBatches,
  ]),
  ...naming(tables.agents, 'agentId', [tables.conversations]),
  ...naming(tables.conversations, 'conversationId', [tables.messages, tables.messageVersions]),
  ...naming(tables.chunkingServices, 'chunkingServiceId', [tables.knowledgeBases]),
  ...naming(tables.embeddingServices, 'embeddingServiceId', [tables.knowledgeBases]),
  ...naming(tables.rerankingServices, 'rerankingServiceId', [tables.knowledgeBases, tables.agents]),
  ...naming(tables.llmServices, 'llmServiceId', [tables.agents]),
]

/** Condition: the job that a row refers to has not ended. */
const isAtWork = `EXISTS (SELECT 1 FROM jobs WHERE jobs.workspaceId = ${fieldOf('workspaceId')}
  AND jobs.jobId = ${fieldOf('jobId')} AND jobs.status IN ('pending', 'running'))`

/** Searches for rows whose parent is missing, and for rows that ended jobs left behind. */
export const rowSearches: readonly ProblemSearch[] = [
  ...[...ofWorkspaces, ...withinWorkspaces].map(orphansOf),
  ...[tables.jobInputs, tables.jobBatches].map(
    (child): ProblemSearch => ({
      check: `${child.name} without an unfinished job`,
      selects: [`SELECT ${exampleOf(child)} AS example FROM ${child.name} AS child WHERE NOT ${isAtWork}`],
    }),
  ),
  {
    check: 'unfinished documents of ended jobs',
    selects: [
      `SELECT ${exampleOf(tables.documents)} AS example FROM documents AS child
        WHERE ${fieldOf('jobId')} IS NOT NULL AND NOT ${isAtWork}`,
    ],
  },
]

function naming(parent: AnyTable, column: string, children: readonly AnyTable[]): Reference[] {
  return children.map(child => ({ child, column, parent }))
}

function orphansOf({ child, column, parent }: Reference): ProblemSearch {
  const own = parent === tables.workspaces ? [] : ['workspaceId']
  const matches = [...own, column].map(name => `parent.${name} = ${fieldOf(name)}`).join(' AND ')
  return {
    check: `${child.name} whose ${column} no longer exists`,
    selects: [
      `SELECT ${exampleOf(child)} AS example FROM ${child.name} AS child
        WHERE ${fieldOf(column)} IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM ${parent.name} AS parent WHERE ${matches})`,
    ],
  }
}

function fieldOf(column: string): string {
  return `(child.body ->> '$.${column}')`
}

function exampleOf({ key }: AnyTable): string {
  return key.map(fieldOf).join(` || '/' || `)
}
