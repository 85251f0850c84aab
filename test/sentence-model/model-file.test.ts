import {
  cpSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { buildSentenceModel, sentenceModelFiles } from '../../scripts/build-sentence-model.mjs'
import { ModelFile } from '../../src/sentence-model/model-file.ts'
import { openOriginalWeights, originalModel, originalVocabulary } from './reference-encoder.ts'

const [name] = sentenceModelFiles as [string]
const built = join('dist', name)

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wb-model-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

/** Opens the built model, and reads its data. */
function readBuilt() {
  const file = new ModelFile(built)
  onTestFinished(() => file.close())
  const data = new Uint8Array(file.dataBytes)
  file.readData(data)
  const bytes = (tensor: string) => {
    const from = file.offsetOf(tensor)
    return data.slice(from, from + file.bytesOf(tensor))
  }
  return { file, bytes, floats: (tensor: string) => new Float32Array(bytes(tensor).buffer) }
}

test('has the weights of the original, to half a step of 8-bit integers', () => {
  const { bytes, floats } = readBuilt()
  const original = openOriginalWeights()
  const inputs = 1_536
  const weights = original('encoder.layer.3.output.dense.weight')
  const integers = new Int8Array(bytes('layers.3.contraction.weight').buffer)
  const scales = floats('layers.3.contraction.scale')
  let worst = 0
  for (let output = 0; output < 384; output++)
    for (let input = 0; input < inputs; input++) {
      // Panels of 16 outputs, of which each has two inputs at a time.
      const at =
        (output - (output % 16)) * inputs + (input - (input % 2)) * 16 + (output % 16) * 2 + (input % 2)
      const error = Math.abs(integers[at]! * scales[output]! - weights[output * inputs + input]!)
      worst = Math.max(worst, error / scales[output]!)
    }
  expect(worst).toBeLessThanOrEqual(0.501)
  expect(floats('layers.3.contraction.bias')).toEqual(original('encoder.layer.3.output.dense.bias'))
})

test('has the vocabulary of the original', () => {
  const { bytes } = readBuilt()
  expect(new TextDecoder().decode(bytes('vocabulary')).split('\n')).toEqual(originalVocabulary())
})

test('is not converted again if nothing has changed', () => {
  const folder = temporaryFolder()
  cpSync(built, join(folder, name))
  utimesSync(join(folder, name), 1_000, 1_000)
  buildSentenceModel(folder, join(folder, 'missing'))
  expect(statSync(join(folder, name)).mtimeMs).toBe(1_000_000)
})

test('is not converted from other weights', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'model.fp16.safetensors'), 'other weights')
  expect(() => buildSentenceModel(folder, folder)).toThrow(
    /model\.fp16\.safetensors has SHA-256 [0-9a-f]{64}, but [0-9a-f]{64} is expected/,
  )
})

test('is not converted with another vocabulary', () => {
  const folder = temporaryFolder()
  cpSync(join(originalModel, 'model.fp16.safetensors'), join(folder, 'model.fp16.safetensors'))
  writeFileSync(join(folder, 'tokenizer.json'), '{}')
  expect(() => buildSentenceModel(folder, folder)).toThrow(/tokenizer\.json has SHA-256/)
})

test.each<[string, (path: string) => void, string]>([
  ['ends too early', path => truncateSync(path, 1_000_000), 'it has 1000000 bytes instead of'],
  ['ends in its header', path => truncateSync(path, 100), 'it ends too early'],
  ['is not a model', path => writeFileSync(path, 'no model'), 'its header is too long'],
  ['has a damaged header', path => overwrite(path, 8, '?'), 'its header is not JSON'],
  [
    'has another layout',
    path => overwrite(path, readFileSync(path).indexOf('"layout":"1"') + 10, '2'),
    'its layout is 2 instead of 1',
  ],
])('is not read if it %s', (_, damage, reason) => {
  const path = join(temporaryFolder(), name)
  cpSync(built, path)
  damage(path)
  expect(() => new ModelFile(path)).toThrow(`cannot read ${path}: ${reason}`)
})

function overwrite(path: string, at: number, text: string): void {
  const bytes = readFileSync(path)
  bytes.write(text, at)
  writeFileSync(path, bytes)
}
