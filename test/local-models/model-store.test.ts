import { appendFileSync, existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '../../src/base/clock.ts'
import { LocalEncoder } from '../../src/local-models/local-encoder.ts'
import { ModelStore } from '../../src/local-models/model-store.ts'
import { fakeNativeRuntime, temporaryFolder, tinyDimension, writeTinyModel } from '../harness/tiny-model.ts'
import { cosine } from '../sentence-model/reference-encoder.ts'

const options = { clock: systemClock, runtime: fakeNativeRuntime }

function setUp(files: Parameters<typeof writeTinyModel>[1] = {}) {
  const dataDir = temporaryFolder()
  const store = new ModelStore(dataDir)
  const source = writeTinyModel(temporaryFolder(), files)
  return { dataDir, store, source, add: (name = 'tiny') => store.add(source, name, options) }
}

async function embed({ store }: ReturnType<typeof setUp>, ...texts: string[]): Promise<Float32Array[]> {
  const encoder = await LocalEncoder.open(store.find('tiny')!, store.folderOf('tiny'), fakeNativeRuntime)
  return encoder.embed(texts)
}

test('a model is copied, listed, found and removed', async () => {
  const { store, add, dataDir } = setUp()
  expect(store.list()).toEqual([])
  const model = await add()
  expect(model).toMatchObject({
    name: 'tiny',
    dimension: tinyDimension,
    pooling: 'mean',
    tokenizer: { lowercase: true, stripsAccents: true, tokensMax: 32 },
    prompts: { query: '', document: '' },
    sha256: {
      model: expect.stringMatching(/^[0-9a-f]{64}$/),
      tokenizer: expect.stringMatching(/^[0-9a-f]{64}$/),
    },
  })
  expect(store.list()).toEqual([model])
  expect(store.find('tiny')).toEqual(model)
  expect(readdirSync(join(dataDir, 'models', 'tiny')).sort()).toEqual([
    'model.json',
    'model.onnx',
    'tokenizer.json',
  ])
  await expect(add()).rejects.toThrow('there is a model with this name')
  expect(store.remove('tiny')).toBe(true)
  expect(store.remove('tiny')).toBe(false)
  expect(store.list()).toEqual([])
})

test('vectors have length 1, and depend on the tokens of the text', async () => {
  const setup = setUp()
  await setup.add()
  const [one, two, three, unknown] = await embed(setup, 'Revoke keys', 'revoke KEYS', 'apple', 'xyz')
  expect(Math.hypot(...one!)).toBeCloseTo(1)
  expect(two).toEqual(one)
  expect(cosine(one!, three!)).toBeLessThan(0.99)
  expect(unknown).not.toEqual(three)
})

test('reads pooling, prompts, capitals and the maximum length from the settings of the model', async () => {
  const setup = setUp({
    '1_Pooling/config.json': { pooling_mode_cls_token: true, pooling_mode_mean_tokens: false },
    'sentence_bert_config.json': { max_seq_length: 4 },
    'config_sentence_transformers.json': { prompts: { query: 'query: ', passage: 'passage: ' } },
  })
  expect(await setup.add()).toMatchObject({
    pooling: 'first',
    tokenizer: { tokensMax: 4 },
    prompts: { query: 'query: ', document: 'passage: ' },
  })
  const [two, three] = await embed(setup, 'revoke key', 'revoke key apple')
  expect(three).toEqual(two)
  const cased = setUp({
    'tokenizer.json': {
      normalizer: { lowercase: false },
      model: { type: 'WordPiece', vocab: { '[UNK]': 0, '[CLS]': 1, '[SEP]': 2, apple: 3, Apple: 4 } },
    },
  })
  await cased.add()
  const [small, capital] = await embed(cased, 'apple', 'Apple')
  expect(small).not.toEqual(capital)
})

test.each<[string, Parameters<typeof writeTinyModel>[1], string]>([
  ['a model file', { 'onnx/model.onnx': null }, 'has neither model.onnx nor onnx/model.onnx'],
  [
    'a model file that is ONNX',
    { 'onnx/model.onnx': new Uint8Array(9) },
    'cannot be opened by onnxruntime-node',
  ],
  ['a tokenizer', { 'tokenizer.json': null }, 'does not contain'],
  ['a WordPiece tokenizer', { 'tokenizer.json': { model: { type: 'BPE' } } }, 'has a tokenizer of type BPE'],
  ['a size', { 'config.json': {} }, 'has a config.json without hidden_size'],
  [
    'the right size',
    { 'config.json': { hidden_size: 8 } },
    'has no output with a row of 8 numbers (f32) per token',
  ],
  [
    'a known pooling',
    { '1_Pooling/config.json': { pooling_mode_max_tokens: true } },
    'a pooling that is not supported: max_tokens',
  ],
])('rejects a folder without %s, and keeps nothing of it', async (_, files, message) => {
  const { store, add, dataDir } = setUp(files)
  await expect(add()).rejects.toThrow(message)
  expect(store.list()).toEqual([])
  expect(existsSync(join(dataDir, 'models')) ? readdirSync(join(dataDir, 'models')) : []).toEqual([])
})

test('says how to install onnxruntime-node if it is missing', async () => {
  const { store, source } = setUp()
  await expect(store.add(source, 'tiny', { clock: systemClock, runtime: undefined })).rejects.toMatchObject({
    message: 'needs onnxruntime-node, which is not installed',
    hint: expect.stringContaining('npm install onnxruntime-node'),
  })
})

test.each(['', '.', '..', '../tiny', 'a/b', 'a\\b', '.hidden', '/etc', 'x'.repeat(65)])(
  'the name %j is never a path',
  async name => {
    const { store, add } = setUp()
    await expect(add(name)).rejects.toThrow('cannot have the name')
    expect(store.find(name)).toBeUndefined()
    expect(store.remove(name)).toBe(false)
  },
)

test('does not open a model whose files have changed since it was added', async () => {
  const setup = setUp()
  await setup.add()
  appendFileSync(join(setup.store.folderOf('tiny'), 'model.onnx'), ' ')
  await expect(embed(setup, 'key')).rejects.toThrow('was changed after it was added')
})
