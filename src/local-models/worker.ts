import { serveOperations } from '../base/threads.ts'
import { LocalEncoder } from './local-encoder.ts'
import type { LocalModel } from './local-model.ts'

/** Input of a worker: a model, its folder, and the folder of onnxruntime-node. */
export interface LocalWorkerInput {
  readonly model: LocalModel
  readonly folder: string
  readonly runtime: string
}

serveOperations(({ model, folder, runtime }: LocalWorkerInput) => {
  const encoder = LocalEncoder.open(model, folder, runtime)
  encoder.catch(() => {})
  return {
    ops: { embed: async (texts: readonly string[]) => (await encoder).embed(texts) },
    close: async () => (await encoder.catch(() => undefined))?.close(),
  }
})
