import type { AnyTable } from '../rows.ts'
import { tables } from '../tables.ts'
import type { ProblemQuery } from './problem-query.ts'

/** A column that contains the ID of a parent row in the same workspace, or null. */
interface Reference {
  readonly child: AnyTable
  readonly column: string
  readonly parent: AnyTable
}

/** Tables whose rows are not deleted with their workspace. */
const retainedTables: readonly AnyTable[] = [tables.workspaces, tables.settings, tables.audit]

const workspaceReferences: Reference[] = Object.values<AnyTable>(tables)
  .filter(table => !retainedTables.includes(table))
  .map(child => ({ child, column: 'workspaceId', parent: tables.workspaces }))

const parentReferences: Reference[] = [
  ...referencesTo(tables.knowledgeBases, 'knowledgeBaseId', [
    tables.documents,
    tables.knowledgeFilters,
    tables.jobs,
    tables.jobInputs,
    tables.jobBatches,
    tables.deletedDocuments,
    tables.deletedChunks,
  ]),
  ...referencesTo(tables.agents, 'agentId', [tables.conversations]),
  ...referencesTo(tables.conversations, 'conversationId', [tables.messages, tables.messageVersions]),
  ...referencesTo(tables.chunkingServices, 'chunkingServiceId', [tables.knowledgeBases]),
  ...referencesTo(tables.embeddingServices, 'embeddingServiceId', [tables.knowledgeBases]),
  ...referencesTo(tables.rerankingServices, 'rerankingServiceId', [tables.knowledgeBases, tables.agents]),
  ...referencesTo(tables.llmServices, 'llmServiceId', [tables.agents]),
]

/** SQL condition that is true if the job to which a row refers has not ended. */
const hasUnfinishedJob = `EXISTS (SELECT 1 FROM jobs WHERE jobs.workspaceId = ${fieldOf('workspaceId')}
  AND jobs.jobId = ${fieldOf('jobId')} AND jobs.status IN ('pending', 'running'))`

/** Queries for rows whose parent is missing, and for rows that were not deleted or completed when their job ended. */
export const rowProblemQueries: readonly ProblemQuery[] = [
  ...[...workspaceReferences, ...parentReferences].map(orphanQuery),
  ...[tables.jobInputs, tables.jobBatches].map(
    (child): ProblemQuery => ({
      check: `${child.name} without an unfinished job`,
      selects: [
        `SELECT ${exampleOf(child)} AS example FROM ${child.name} AS child WHERE NOT ${hasUnfinishedJob}`,
      ],
    }),
  ),
  {
    check: 'unfinished documents of ended jobs',
    selects: [
      `SELECT ${exampleOf(tables.documents)} AS example FROM documents AS child
        WHERE ${fieldOf('jobId')} IS NOT NULL AND NOT ${hasUnfinishedJob}`,
    ],
  },
]

function referencesTo(parent: AnyTable, column: string, children: readonly AnyTable[]): Reference[] {
  return children.map(child => ({ child, column, parent }))
}

function orphanQuery({ child, column, parent }: Reference): ProblemQuery {
  const workspaceColumn = parent === tables.workspaces ? [] : ['workspaceId']
  const matches = [...workspaceColumn, column].map(name => `parent.${name} = ${fieldOf(name)}`).join(' AND ')
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
