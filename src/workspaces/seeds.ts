import { newId } from '../base/id.ts'
import { builtInProvider } from '../contract/providers.ts'
import { chunkingPresets, embeddingPresets, llmPresets } from '../contract/services/presets.ts'
import {
  ChunkingCreate,
  type ChunkingCreateInput,
  EmbeddingCreate,
  type EmbeddingCreateInput,
  LlmCreate,
} from '../contract/services.ts'
import type { Workspace, WorkspaceKind } from '../contract/workspaces.ts'
import { lsaDimension } from '../models/lsa.ts'
import type { Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { builtInAgentTemplates, createAgentFrom } from './agent-templates.ts'

export const builtInModel = 'workbase-lsa'

const builtIn: EmbeddingCreateInput = {
  name: builtInModel,
  description: 'Built-in embedder, fitted on the text of each knowledge base; works offline.',
  provider: builtInProvider,
  modelName: builtInModel,
  embeddingDimension: lsaDimension,
  supportedLanguages: ['multi'],
  supportedContent: ['text'],
}

function chunkingSeeds(kind: WorkspaceKind): ChunkingCreateInput[] {
  const { passages, 'recursive-char-1000': recursive, 'line-rows-1': lineRows } = chunkingPresets
  return kind === 'local' ? [passages, recursive, lineRows] : [recursive, lineRows]
}

function embeddingSeeds(kind: WorkspaceKind): EmbeddingCreateInput[] {
  if (kind === 'local') return [builtIn]
  return [embeddingPresets[kind === 'mock' ? 'mock-embedder' : 'nvidia-nv-embedqa-e5-v5']]
}

/**
 * Returns the writes for the initial contents of a new workspace, in listing order.
 *
 * @see docs/http.md#a-new-workspace
 */
export function seedWrites(workspace: Workspace): Write[] {
  const { workspaceId, createdAt } = workspace
  const systemFields = { workspaceId, createdAt, updatedAt: createdAt }
  const llmServiceId = newId()
  return [
    ...chunkingSeeds(workspace.kind).map(seed => ({
      op: 'insert' as const,
      table: tables.chunkingServices,
      row: { ...ChunkingCreate.parse(seed), ...systemFields, chunkingServiceId: newId() },
    })),
    ...embeddingSeeds(workspace.kind).map(seed => ({
      op: 'insert' as const,
      table: tables.embeddingServices,
      row: { ...EmbeddingCreate.parse(seed), ...systemFields, embeddingServiceId: newId() },
    })),
    {
      op: 'insert',
      table: tables.llmServices,
      row: { ...LlmCreate.parse(llmPresets['openrouter-gpt-4o-mini']), ...systemFields, llmServiceId },
    },
    ...agentSeeds({ workspaceId, llmServiceId, createdAt }),
  ]
}

/**
 * Returns writes for the default agents. Their IDs are sorted, because agents that are created at the same time are
 * listed by ID.
 */
function agentSeeds(fields: { workspaceId: string; llmServiceId: string; createdAt: string }): Write[] {
  const defaults = builtInAgentTemplates.filter(({ defaultOnNewWorkspace }) => defaultOnNewWorkspace)
  const ids = defaults.map(() => newId()).sort()
  return defaults.map((template, index) => ({
    op: 'insert',
    table: tables.agents,
    row: createAgentFrom(template, { ...fields, agentId: ids[index] }),
  }))
}
