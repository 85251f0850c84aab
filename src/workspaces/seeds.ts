import { newId } from '../base/id.ts'
import {
  ChunkingCreate,
  type ChunkingCreateInput,
  EmbeddingCreate,
  type EmbeddingCreateInput,
} from '../contract/services.ts'
import type { Workspace, WorkspaceKind } from '../contract/workspaces.ts'
import { lsaDimension } from '../models/lsa.ts'
import type { Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { agentOf, agentTemplates } from './templates.ts'

const passages: ChunkingCreateInput = {
  name: 'passages',
  description: 'Whole sentences, packed into passages; headings and blank lines are kept as breaks.',
  engine: 'workbase',
  strategy: 'sentence',
  chunkUnit: 'characters',
  maxChunkSize: 1_200,
  minChunkSize: 200,
  overlapSize: 200,
  overlapUnit: 'characters',
  preserveStructure: true,
}

const recursive: ChunkingCreateInput = {
  name: 'recursive-char-1000',
  description: 'Windows of up to 1,000 characters that overlap by 150, cut at the widest break.',
  engine: 'langchain_ts',
  strategy: 'recursive',
  chunkUnit: 'characters',
  maxChunkSize: 1_000,
  minChunkSize: 100,
  overlapSize: 150,
  overlapUnit: 'characters',
  preserveStructure: true,
}

const lineRows: ChunkingCreateInput = {
  name: 'line-rows-1',
  description: 'One chunk for each line, for tables and logs.',
  engine: 'langchain_ts',
  strategy: 'line',
  chunkUnit: 'rows',
  maxChunkSize: 1,
  minChunkSize: 0,
  overlapSize: 0,
  overlapUnit: 'rows',
  preserveStructure: true,
}

/** The provider name of the embedder that the runtime fits on a knowledge base's own text. */
export const builtInProvider = 'workbase'
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

const mockEmbedder: EmbeddingCreateInput = {
  name: 'mock-embedder',
  description: 'Deterministic vectors without meaning, for tests.',
  provider: 'mock',
  modelName: 'mock-embedder',
  embeddingDimension: 1_024,
  maxBatchSize: 1_000,
  maxInputTokens: 8_192,
  supportedLanguages: ['en', 'multi'],
  supportedContent: ['text'],
}

const nvidia: EmbeddingCreateInput = {
  name: 'nvidia-nv-embedqa-e5-v5',
  description: 'Embeds inside the remote database; the runtime itself cannot call it.',
  provider: 'nvidia',
  modelName: 'nvidia/nv-embedqa-e5-v5',
  embeddingDimension: 1_024,
  maxBatchSize: 64,
  maxInputTokens: 512,
  supportedLanguages: ['multi'],
  supportedContent: ['text'],
}

const openrouter = {
  name: 'openrouter-gpt-4o-mini',
  description: 'A small, quick chat model by way of OpenRouter.',
  status: 'active',
  provider: 'openrouter',
  engine: null,
  modelName: 'openai/gpt-4o-mini',
  modelVersion: null,
  contextWindowTokens: 128_000,
  maxOutputTokens: 1_024,
  temperatureMin: null,
  temperatureMax: null,
  supportsStreaming: true,
  supportsTools: true,
  endpointBaseUrl: null,
  endpointPath: null,
  requestTimeoutMs: null,
  maxBatchSize: null,
  authType: 'api_key',
  credentialRef: 'env:OPENROUTER_API_KEY',
  supportedLanguages: ['en', 'multi'],
  supportedContent: ['text'],
}

function chunkingSeeds(kind: WorkspaceKind): ChunkingCreateInput[] {
  return kind === 'local' ? [passages, recursive, lineRows] : [recursive, lineRows]
}

function embeddingSeeds(kind: WorkspaceKind): EmbeddingCreateInput[] {
  if (kind === 'local') return [builtIn]
  return kind === 'mock' ? [mockEmbedder] : [nvidia]
}

/** What a new workspace starts with, in the order in which it is listed. @see contract 4.7 */
export function seedsOf(workspace: Workspace): Write[] {
  const { workspaceId, createdAt } = workspace
  const stamps = { workspaceId, createdAt, updatedAt: createdAt }
  const llmServiceId = newId()
  return [
    ...chunkingSeeds(workspace.kind).map(seed => ({
      op: 'insert' as const,
      table: tables.chunkingServices,
      row: { ...ChunkingCreate.parse(seed), ...stamps, chunkingServiceId: newId() },
    })),
    ...embeddingSeeds(workspace.kind).map(seed => ({
      op: 'insert' as const,
      table: tables.embeddingServices,
      row: { ...EmbeddingCreate.parse(seed), ...stamps, embeddingServiceId: newId() },
    })),
    { op: 'insert', table: tables.llmServices, row: { ...stamps, llmServiceId, ...openrouter } },
    ...agentSeeds({ workspaceId, llmServiceId, createdAt }),
  ]
}

/** Agents of one moment are listed by their ids. */
function agentSeeds(place: { workspaceId: string; llmServiceId: string; createdAt: string }): Write[] {
  const defaults = agentTemplates.filter(({ defaultOnNewWorkspace }) => defaultOnNewWorkspace)
  const ids = defaults.map(() => newId()).sort()
  return defaults.map((template, at) => ({
    op: 'insert',
    table: tables.agents,
    row: agentOf(template, { ...place, agentId: ids[at] }),
  }))
}
