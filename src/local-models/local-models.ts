import { join } from 'node:path'
import { packageRoot } from '../base/package.ts'
import { type OperationHost, type ThreadOperations, threadHost } from '../base/threads.ts'
import { findNativeRuntime, loadNativeRuntime } from '../sentence-model/native-runtime.ts'
import { type LocalModel, LocalModelError } from './local-model.ts'
import { installRuntimeHint, ModelStore } from './model-store.ts'
import type { LocalWorkerInput } from './worker.ts'

/** Idle time in milliseconds after which the worker of a model ends and frees its memory. */
const idleMs = 60_000
/** Number of texts that a worker receives at once. After an abort, a caller waits for at most this many texts. */
const textsPerCall = 16

interface EmbedOperations extends ThreadOperations {
  embed(texts: readonly string[]): Promise<Float32Array[]>
}

export interface LocalModelsOptions {
  readonly dataDir: string
  /** Folder of onnxruntime-node; by default the one that is installed for this package. */
  readonly runtime?: string | undefined
}

/** Embeds texts with models that were added to a data directory, each in a worker thread. */
export class LocalModels {
  readonly #store: ModelStore
  readonly #runtime: string | undefined
  /** Workers by the hash of their model, so that a model that is replaced gets another. */
  readonly #hosts = new Map<string, OperationHost<EmbedOperations>>()

  constructor({ dataDir, runtime = findNativeRuntime() }: LocalModelsOptions) {
    this.#store = new ModelStore(dataDir)
    this.#runtime = runtime
  }

  /**
   * Returns a model. Loads nothing.
   *
   * @throws LocalModelError  there is no such model, its description is damaged, or onnxruntime-node is not installed
   */
  require(name: string): LocalModel {
    const model = this.#store.find(name)
    if (!model) throw new LocalModelError('was not added to this runtime', 'wb models add FOLDER --name NAME')
    if (!this.#runtime)
      throw new LocalModelError('needs onnxruntime-node, which is not installed', installRuntimeHint)
    return model
  }

  /**
   * Returns the vectors of texts, of length 1. A query waits for at most one text of other calls of the same model.
   *
   * @throws LocalModelError  see {@link require}
   * @throws Error            the model cannot be opened, or its worker crashed
   */
  async embed(
    name: string,
    texts: readonly string[],
    { purpose, signal }: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<Float32Array[]> {
    const model = this.require(name)
    const prompt = model.prompts[purpose]
    const host = this.#hostOf(model)
    const vectors: Float32Array[] = []
    for (let from = 0; from < texts.length; from += textsPerCall) {
      signal.throwIfAborted()
      const slice = texts.slice(from, from + textsPerCall).map(text => prompt + text)
      vectors.push(...(await host.run('embed', slice)))
    }
    // A native module that all threads have unloaded cannot be loaded again, so this thread keeps it loaded.
    if (texts.length > 0) loadNativeRuntime(this.#runtime!)
    return vectors
  }

  async close(): Promise<void> {
    await Promise.all([...this.#hosts.values()].map(host => host.close()))
  }

  #hostOf(model: LocalModel): OperationHost<EmbedOperations> {
    const key = `${model.name} ${model.sha256.model} ${model.sha256.tokenizer}`
    const existing = this.#hosts.get(key)
    if (existing) return existing
    const input: LocalWorkerInput = {
      model,
      folder: this.#store.folderOf(model.name),
      runtime: this.#runtime!,
    }
    const entry = join(packageRoot(), 'dist', 'src', 'local-models', 'worker.js')
    const host = threadHost<EmbedOperations>(entry, input, { idleMs })
    this.#hosts.set(key, host)
    return host
  }
}
