import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { FastestEncoder } from '../../src/sentence-model/fastest-encoder.ts'
import { NativeEncoder } from '../../src/sentence-model/native-encoder.ts'
import { findNativeRuntime, loadNativeRuntime } from '../../src/sentence-model/native-runtime.ts'
import { SentenceEncoder } from '../../src/sentence-model/sentence-encoder.ts'
import { SentenceModel } from '../../src/sentence-model/sentence-model.ts'
import { cosine } from './reference-encoder.ts'

/** Computes models in JavaScript, like onnxruntime-node but much slower. */
const runtime = join(import.meta.dirname, '../fakes/onnxruntime-node')
const question = 'throw away an API token'
/** As many characters as are encoded before the runtime is loaded. */
const longText = 'a'.repeat(1_000)

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wb-native-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Creates a package with the name of the runtime. */
function installRuntime(modules: string, code = ''): string {
  const folder = join(modules, 'onnxruntime-node')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "main": "index.cjs" }')
  writeFileSync(join(folder, 'index.cjs'), code)
  return folder
}

test('the ONNX graph computes the same vectors of texts and tokens as the kernels', async () => {
  const native = await NativeEncoder.open(loadNativeRuntime(runtime))
  const texts = [question, 'Revoke a key.', '']
  const expected = new SentenceEncoder().encode(texts)
  const encoded = await native.encode(texts)
  for (const [at, { vector, tokens, tokenVectors }] of encoded.entries()) {
    expect(cosine(vector, expected[at]!.vector)).toBeGreaterThan(0.98)
    expect(tokens).toEqual(expected[at]!.tokens)
    for (let from = 0; from < tokenVectors.length; from += 384) {
      const row = expected[at]!.tokenVectors.subarray(from, from + 384)
      expect(cosine(tokenVectors.subarray(from, from + 384), row)).toBeGreaterThan(0.95)
    }
  }
  expect(await native.embed(texts)).toEqual(encoded.map(({ vector }) => vector))
})

test('the runtime is loaded only after some texts, so that a single question does not wait for it', async () => {
  const encoder = new FastestEncoder({ runtime })
  expect(await encoder.embed([question])).toEqual(new SentenceEncoder().embed([question]))
  await encoder.embed([longText])
  expect(encoder.engine).toEqual({ name: 'wasm', failure: null })
  const [vector] = await encoder.embed([question])
  expect(encoder.engine).toEqual({ name: 'native', failure: null })
  expect(cosine(vector!, new SentenceEncoder().embed([question])[0]!)).toBeGreaterThan(0.98)
})

test('a runtime that cannot be loaded, or computes other vectors, is not used', async () => {
  const wrong = `
    exports.Tensor = class {}
    exports.InferenceSession = {
      create: async () => ({ run: async () => ({ rows: { data: new Float32Array(384 * 20).fill(1) } }), release() {} }),
    }`
  for (const [code, failure] of [
    ['throw new Error("wrong platform")', 'wrong platform'],
    [wrong, expect.stringMatching(/^its vector of a test sentence differs: cosine -?0\.\d{3}$/)],
  ] as const) {
    const reasons: string[] = []
    const model = new SentenceModel({
      runtime: installRuntime(temporaryFolder(), code),
      onNativeFailure: reason => reasons.push(reason),
    })
    onTestFinished(() => model.close())
    await model.embed([longText], { priority: 'background' })
    const [vector] = await model.embed([question], { priority: 'query' })
    expect(vector).toEqual(new SentenceEncoder().embed([question])[0])
    expect(await model.engine()).toEqual({ name: 'wasm', failure })
    await model.embed([question], { priority: 'query' })
    expect(reasons).toEqual([failure])
  }
})

test('the runtime is found only in the own folder and in the one that contains this package', () => {
  const folder = temporaryFolder()
  const root = join(folder, 'app', 'node_modules', 'workbase')
  mkdirSync(root, { recursive: true })
  // Node.js would also search this folder.
  installRuntime(join(folder, 'node_modules'))
  expect(findNativeRuntime(root)).toBeUndefined()
  const beside = installRuntime(join(folder, 'app', 'node_modules'))
  expect(findNativeRuntime(join(folder, 'app', 'workbase'))).toBeUndefined()
  expect(findNativeRuntime(root)).toBe(beside)
  const own = installRuntime(join(root, 'node_modules'))
  expect(findNativeRuntime(root)).toBe(own)
})
