import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { LocalEncoder } from '../../src/local-models/local-encoder.ts'
import { LocalModels } from '../../src/local-models/local-models.ts'
import { ModelStore } from '../../src/local-models/model-store.ts'
import { fakeNativeRuntime, temporaryFolder, writeTinyModel } from '../harness/tiny-model.ts'
import { cosine } from '../sentence-model/reference-encoder.ts'
import { nativeRuntime } from './native-runtime.ts'

const texts = ['revoke keys', 'an apple', '', 'Apple apple key query']
const options = { purpose: 'document', signal: new AbortController().signal } as const

test('a model that was added computes the same vectors as its replacement in JavaScript', async () => {
  const dataDir = temporaryFolder()
  const store = new ModelStore(dataDir)
  const source = writeTinyModel(temporaryFolder())
  const model = await store.add(source, 'tiny', { clock: systemClock, runtime: nativeRuntime })
  const replacement = await LocalEncoder.open(model, store.folderOf('tiny'), fakeNativeRuntime)
  const models = new LocalModels({ dataDir, runtime: nativeRuntime })
  onTestFinished(() => models.close())
  const vectors = await models.embed('tiny', texts, options)
  for (const [at, expected] of (await replacement.embed(texts)).entries())
    expect(cosine(vectors[at]!, expected)).toBeGreaterThan(0.999)
})

test('a folder with a file that is not a model is rejected', async () => {
  const store = new ModelStore(temporaryFolder())
  const source = writeTinyModel(temporaryFolder(), { 'onnx/model.onnx': Buffer.from('not a model') })
  const added = store.add(source, 'tiny', { clock: systemClock, runtime: nativeRuntime })
  await expect(added).rejects.toThrow('cannot be opened by onnxruntime-node')
})
