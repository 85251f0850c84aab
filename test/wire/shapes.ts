import { anyText, isoMs, uuid } from './exactly.ts'

type Fields = Record<string, unknown>

export const unknownId = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'

/** A document ID that is not a UUID because its variant nibble is 4. */
export const notUuid = '11111111-2222-3333-4444-555555555555'

/** The body of every error response. @see docs/requirements.md#S7.1-01 */
export function failure(code: string): Fields {
  return {
    error: {
      code,
      message: anyText,
      requestId: anyText,
      hint: anyText,
      docs: `docs/errors.md#${code.replaceAll('_', '-')}`,
    },
  }
}

export function workspace(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    name: anyText,
    kind: 'local',
    url: null,
    keyspace: null,
    credentials: {},
    rlacEnabled: false,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function chunkingService(known: Fields = {}): Fields {
  return {
    chunkingServiceId: uuid,
    workspaceId: uuid,
    name: anyText,
    description: null,
    status: 'active',
    engine: anyText,
    engineVersion: null,
    strategy: null,
    maxChunkSize: null,
    minChunkSize: null,
    chunkUnit: null,
    overlapSize: null,
    overlapUnit: null,
    preserveStructure: null,
    language: null,
    readingOrder: null,
    maxPayloadSizeKb: null,
    enableOcr: null,
    extractTables: null,
    extractFigures: null,
    endpointBaseUrl: null,
    endpointPath: null,
    requestTimeoutMs: null,
    authType: 'none',
    credentialRef: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function embeddingService(known: Fields = {}): Fields {
  return {
    embeddingServiceId: uuid,
    workspaceId: uuid,
    name: anyText,
    description: null,
    status: 'active',
    provider: anyText,
    modelName: anyText,
    embeddingDimension: 1024,
    distanceMetric: 'cosine',
    maxBatchSize: null,
    maxInputTokens: null,
    supportedLanguages: [],
    supportedContent: [],
    endpointBaseUrl: null,
    endpointPath: null,
    requestTimeoutMs: null,
    authType: 'none',
    credentialRef: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function rerankingService(known: Fields = {}): Fields {
  return {
    rerankingServiceId: uuid,
    workspaceId: uuid,
    name: anyText,
    description: null,
    status: 'active',
    provider: anyText,
    engine: null,
    modelName: anyText,
    modelVersion: null,
    maxCandidates: null,
    scoringStrategy: null,
    scoreNormalized: null,
    returnScores: null,
    maxBatchSize: null,
    supportedLanguages: [],
    supportedContent: [],
    endpointBaseUrl: null,
    endpointPath: null,
    requestTimeoutMs: null,
    authType: 'none',
    credentialRef: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function llmService(known: Fields = {}): Fields {
  return {
    llmServiceId: uuid,
    workspaceId: uuid,
    name: anyText,
    description: null,
    status: 'active',
    provider: anyText,
    engine: null,
    modelName: anyText,
    modelVersion: null,
    contextWindowTokens: null,
    maxOutputTokens: null,
    temperatureMin: null,
    temperatureMax: null,
    supportsStreaming: null,
    supportsTools: null,
    maxBatchSize: null,
    supportedLanguages: [],
    supportedContent: [],
    endpointBaseUrl: null,
    endpointPath: null,
    requestTimeoutMs: null,
    authType: 'none',
    credentialRef: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function knowledgeBase(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    knowledgeBaseId: uuid,
    name: anyText,
    description: null,
    status: 'active',
    embeddingServiceId: uuid,
    chunkingServiceId: uuid,
    rerankingServiceId: null,
    language: null,
    vectorCollection: anyText,
    owned: true,
    lexical: { enabled: true, analyzer: null, options: {} },
    policyDsl: null,
    policyEnabled: false,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function document(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    knowledgeBaseId: uuid,
    documentId: uuid,
    sourceDocId: null,
    sourceFilename: null,
    fileType: null,
    fileSize: null,
    contentHash: null,
    chunkTotal: null,
    ingestedAt: null,
    updatedAt: isoMs,
    status: 'pending',
    errorMessage: null,
    metadata: {},
    visibleTo: null,
    ownerPrincipalId: null,
    ...known,
  }
}

export function job(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    jobId: uuid,
    kind: 'ingest',
    knowledgeBaseId: uuid,
    documentId: uuid,
    status: 'pending',
    processed: 0,
    total: null,
    result: null,
    errorMessage: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

/** The services of a new workspace of any kind. @see docs/http.md#a-new-workspace */
export const recursiveSeed = {
  name: 'recursive-char-1000',
  description: anyText,
  engine: 'langchain_ts',
  strategy: 'recursive',
  chunkUnit: 'characters',
  maxChunkSize: 1000,
  minChunkSize: 100,
  overlapSize: 150,
  overlapUnit: 'characters',
  preserveStructure: true,
}

export const lineSeed = {
  name: 'line-rows-1',
  description: anyText,
  engine: 'langchain_ts',
  strategy: 'line',
  chunkUnit: 'rows',
  maxChunkSize: 1,
  minChunkSize: 0,
  overlapSize: 0,
  overlapUnit: 'rows',
  preserveStructure: true,
}

export const mockSeed = {
  name: 'mock-embedder',
  description: anyText,
  provider: 'mock',
  modelName: 'mock-embedder',
  embeddingDimension: 1024,
  distanceMetric: 'cosine',
  maxBatchSize: 1000,
  maxInputTokens: 8192,
  supportedLanguages: ['en', 'multi'],
  supportedContent: ['text'],
}

export const remoteSeed = {
  name: 'nvidia-nv-embedqa-e5-v5',
  description: anyText,
  provider: 'nvidia',
  modelName: 'nvidia/nv-embedqa-e5-v5',
  embeddingDimension: 1024,
  distanceMetric: 'cosine',
  maxBatchSize: 64,
  maxInputTokens: 512,
  supportedLanguages: ['multi'],
  supportedContent: ['text'],
}

export function knowledgeFilter(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    knowledgeBaseId: uuid,
    knowledgeFilterId: uuid,
    name: anyText,
    description: null,
    filter: {},
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function agent(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    agentId: uuid,
    name: anyText,
    description: null,
    systemPrompt: null,
    userPrompt: null,
    llmServiceId: null,
    knowledgeBaseIds: [],
    toolIds: [],
    rerankEnabled: false,
    rerankingServiceId: null,
    rerankMaxResults: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

export function conversation(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    agentId: uuid,
    conversationId: uuid,
    title: null,
    knowledgeBaseIds: [],
    createdAt: isoMs,
    lastActivityAt: isoMs,
    ...known,
  }
}

export function message(known: Fields = {}): Fields {
  return {
    workspaceId: uuid,
    chatId: uuid,
    messageId: uuid,
    messageTs: isoMs,
    role: 'user',
    content: anyText,
    tokenCount: null,
    metadata: {},
    ...known,
  }
}

export const llmSeed = {
  name: 'openrouter-gpt-4o-mini',
  description: anyText,
  provider: 'openrouter',
  modelName: 'openai/gpt-4o-mini',
  contextWindowTokens: 128000,
  maxOutputTokens: 1024,
  supportsStreaming: true,
  supportsTools: true,
  authType: 'api_key',
  credentialRef: 'env:OPENROUTER_API_KEY',
  supportedLanguages: ['en', 'multi'],
  supportedContent: ['text'],
}
