import type { ChunkingCreateInput } from './chunking.ts'
import type { EmbeddingCreateInput } from './embedding.ts'
import type { LlmCreateInput } from './llm.ts'

const passages: ChunkingCreateInput = {
  name: 'passages',
  description: 'Passages of whole sentences, split at headings and blank lines where possible.',
  engine: 'workbase',
  strategy: 'sentence',
  chunkUnit: 'characters',
  maxChunkSize: 1_200,
  minChunkSize: 200,
  overlapSize: 200,
  overlapUnit: 'characters',
  preserveStructure: true,
}

const structure: ChunkingCreateInput = {
  ...passages,
  name: 'structure',
  description:
    'Whole sections, paragraphs, tables or functions where they fit, split along the structure of the text.',
  strategy: 'structure',
  overlapSize: 0,
}

const structureTokens: ChunkingCreateInput = {
  ...structure,
  name: 'structure-tokens-200',
  description:
    'Like structure, with chunks of up to 200 tokens, which the built-in sentence model reads whole.',
  chunkUnit: 'tokens',
  maxChunkSize: 200,
  minChunkSize: 40,
  overlapUnit: 'tokens',
}

function recursive(max: number, min: number, overlap: number): ChunkingCreateInput {
  return {
    name: `recursive-char-${max}`,
    description: `Chunks of up to ${max.toLocaleString('en-US')} characters that overlap by ${overlap}, split at paragraphs, lines, sentences or words.`,
    engine: 'langchain_ts',
    strategy: 'recursive',
    chunkUnit: 'characters',
    maxChunkSize: max,
    minChunkSize: min,
    overlapSize: overlap,
    overlapUnit: 'characters',
    preserveStructure: true,
  }
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
  description: 'An embedding model that the remote database calls. The runtime cannot call it.',
  provider: 'nvidia',
  modelName: 'nvidia/nv-embedqa-e5-v5',
  embeddingDimension: 1_024,
  maxBatchSize: 64,
  maxInputTokens: 512,
  supportedLanguages: ['multi'],
  supportedContent: ['text'],
}

const openrouterEmbedding: EmbeddingCreateInput = {
  name: 'openrouter-text-embedding-3-small',
  description: 'A small embedding model through OpenRouter.',
  provider: 'openrouter',
  modelName: 'openai/text-embedding-3-small',
  embeddingDimension: 1_536,
  endpointBaseUrl: 'https://openrouter.ai/api/v1',
  authType: 'api_key',
  credentialRef: 'env:OPENROUTER_API_KEY',
  maxBatchSize: 512,
  maxInputTokens: 8_191,
  supportedLanguages: ['multi'],
  supportedContent: ['text'],
}

const ollamaEmbedding: EmbeddingCreateInput = {
  name: 'ollama-nomic-embed-text',
  description: 'An embedding model that an Ollama server runs.',
  provider: 'ollama',
  modelName: 'nomic-embed-text',
  embeddingDimension: 768,
  maxBatchSize: 64,
  maxInputTokens: 8_192,
  supportedLanguages: ['en'],
  supportedContent: ['text'],
}

function openaiEmbedding(size: 'small' | 'large', dimension: number): EmbeddingCreateInput {
  return {
    name: `openai-text-embedding-3-${size}`,
    description: `The ${size} embedding model of OpenAI.`,
    provider: 'openai',
    modelName: `text-embedding-3-${size}`,
    embeddingDimension: dimension,
    authType: 'api_key',
    credentialRef: 'env:OPENAI_API_KEY',
    maxBatchSize: 512,
    maxInputTokens: 8_191,
    supportedLanguages: ['multi'],
    supportedContent: ['text'],
  }
}

const cohereEmbedding: EmbeddingCreateInput = {
  name: 'cohere-embed-v4-multilingual',
  description: 'The multilingual embedding model of Cohere.',
  provider: 'cohere',
  modelName: 'embed-v4.0',
  embeddingDimension: 1_024,
  authType: 'api_key',
  credentialRef: 'env:COHERE_API_KEY',
  maxBatchSize: 96,
  maxInputTokens: 512,
  supportedLanguages: ['multi'],
  supportedContent: ['text'],
}

const openrouterLlm: LlmCreateInput = {
  name: 'openrouter-gpt-4o-mini',
  description: 'A small, quick chat model through OpenRouter.',
  provider: 'openrouter',
  modelName: 'openai/gpt-4o-mini',
  contextWindowTokens: 128_000,
  maxOutputTokens: 1_024,
  supportsStreaming: true,
  supportsTools: true,
  authType: 'api_key',
  credentialRef: 'env:OPENROUTER_API_KEY',
  supportedLanguages: ['en', 'multi'],
  supportedContent: ['text'],
}

export const chunkingPresets = {
  passages,
  structure,
  'structure-tokens-200': structureTokens,
  'recursive-char-500': recursive(500, 50, 75),
  'recursive-char-1000': recursive(1_000, 100, 150),
  'recursive-char-2000': recursive(2_000, 150, 250),
  'recursive-char-4000': recursive(4_000, 250, 400),
  'line-rows-1': lineRows,
} as const satisfies Record<string, ChunkingCreateInput>

export const embeddingPresets = {
  'openrouter-text-embedding-3-small': openrouterEmbedding,
  'ollama-nomic-embed-text': ollamaEmbedding,
  'openai-text-embedding-3-small': openaiEmbedding('small', 1_536),
  'openai-text-embedding-3-large': openaiEmbedding('large', 3_072),
  'cohere-embed-v4-multilingual': cohereEmbedding,
  'nvidia-nv-embedqa-e5-v5': nvidia,
  'mock-embedder': mockEmbedder,
} as const satisfies Record<string, EmbeddingCreateInput>

export const llmPresets = {
  'openrouter-gpt-4o-mini': openrouterLlm,
} as const satisfies Record<string, LlmCreateInput>
