import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { WordPieceSettings } from '../sentence-model/word-piece-tokenizer.ts'
import { LocalModelError, type Pooling, tokenizerFile } from './local-model.ts'

/** Maximum sizes in bytes. ONNX files cannot be larger than 2 GB. */
const modelBytesMax = 2_000_000_000
const jsonBytesMax = 64_000_000
/** Maximum number of tokens that are read, because attention takes time and memory with the square of their number. */
const tokensMax = 8_192
/** Number of tokens if the folder does not say how many the model can read. */
const tokensDefault = 512

/** Files and settings of a model, in the layout of Hugging Face. */
export interface ModelFolder {
  /** Path of the ONNX file. */
  readonly model: string
  /** Path of `tokenizer.json`. */
  readonly tokenizer: string
  readonly settings: WordPieceSettings
  readonly pooling: Pooling
  readonly dimension: number
  readonly prompts: { readonly query: string; readonly document: string }
}

type Json = Readonly<Record<string, unknown>>

/**
 * Reads the description of a model in a folder: `model.onnx` or `onnx/model.onnx`, `tokenizer.json` and `config.json`; and, if
 * present, the settings of sentence-transformers.
 *
 * @throws LocalModelError  a file is missing, or the model is of an unsupported kind
 */
export function readModelFolder(folder: string): ModelFolder {
  const model = [join(folder, 'model.onnx'), join(folder, 'onnx', 'model.onnx')].find(path =>
    existsSync(path),
  )
  if (!model) throw new LocalModelError('has neither model.onnx nor onnx/model.onnx')
  requireFile(model, modelBytesMax)
  const tokenizer = join(folder, tokenizerFile)
  const config = readJson(join(folder, 'config.json'))
  const dimension = config.hidden_size ?? config.dim
  if (!isPositiveInteger(dimension)) throw new LocalModelError('has a config.json without hidden_size')
  const limits = [
    config.max_position_embeddings,
    readOptionalJson(join(folder, 'sentence_bert_config.json')).max_seq_length,
    tokensMax,
  ].filter(isPositiveInteger)
  const isLimited = limits.length > 1
  return {
    model,
    tokenizer,
    settings: {
      ...readTokenizerSettings(readJson(tokenizer)),
      tokensMax: isLimited ? Math.min(...limits) : tokensDefault,
    },
    pooling: readPooling(readOptionalJson(join(folder, '1_Pooling', 'config.json'))),
    dimension,
    prompts: readPrompts(readOptionalJson(join(folder, 'config_sentence_transformers.json'))),
  }
}

/** Returns the tokens by ID of a file `tokenizer.json`. */
export function readVocabulary(path: string): string[] {
  const { vocab } = asObject(readJson(path).model)
  const vocabulary: string[] = []
  for (const [token, id] of Object.entries(asObject(vocab)))
    if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < 1_000_000) vocabulary[id] = token
  return Array.from(vocabulary, token => token ?? '')
}

function readTokenizerSettings(tokenizer: Json): Omit<WordPieceSettings, 'tokensMax'> {
  const model = asObject(tokenizer.model)
  if (model.type !== 'WordPiece')
    throw new LocalModelError(
      `has a tokenizer of type ${String(model.type)}`,
      'Workbase supports models with a WordPiece tokenizer, such as BERT, MiniLM, E5, BGE and GTE in English.',
    )
  if ((model.continuing_subword_prefix ?? '##') !== '##')
    throw new LocalModelError('has a tokenizer with another continuing_subword_prefix than ##')
  const normalizer = asObject(tokenizer.normalizer)
  const lowercase = normalizer.lowercase === true
  return {
    lowercase,
    stripsAccents: typeof normalizer.strip_accents === 'boolean' ? normalizer.strip_accents : lowercase,
    unknown: typeof model.unk_token === 'string' ? model.unk_token : '[UNK]',
    start: '[CLS]',
    end: '[SEP]',
  }
}

function readPooling(config: Json): Pooling {
  const modes = Object.entries(config).flatMap(([key, value]) =>
    key.startsWith('pooling_mode_') && value === true ? [key.slice('pooling_mode_'.length)] : [],
  )
  if (modes.length === 0 || (modes.length === 1 && modes[0] === 'mean_tokens')) return 'mean'
  if (modes.length === 1 && modes[0] === 'cls_token') return 'first'
  throw new LocalModelError(`has a pooling that is not supported: ${modes.join(' and ')}`)
}

function readPrompts(config: Json): { query: string; document: string } {
  const prompts = asObject(config.prompts)
  const promptOf = (...names: string[]) =>
    names.map(name => prompts[name]).find(prompt => typeof prompt === 'string') ?? ''
  return { query: promptOf('query'), document: promptOf('document', 'passage') }
}

function isPositiveInteger(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value > 0
}

function requireFile(path: string, bytesMax: number): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (!stats) throw new LocalModelError(`does not contain ${path}`)
  if (!stats.isFile()) throw new LocalModelError(`contains ${path}, which is not a file`)
  if (stats.size > bytesMax) throw new LocalModelError(`contains ${path}, which is too large`)
}

function readOptionalJson(path: string): Json {
  return existsSync(path) ? readJson(path) : {}
}

function readJson(path: string): Json {
  requireFile(path, jsonBytesMax)
  try {
    return asObject(JSON.parse(readFileSync(path, 'utf8')))
  } catch (cause) {
    throw new LocalModelError(`contains ${path}, which is not JSON`, undefined, cause)
  }
}

function asObject(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {}
}
