import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { onTestFinished } from 'vitest'
import { randomNumbers } from '../../src/base/random-numbers.ts'
import { encodeOnnx, type OnnxNode, type OnnxTensor } from '../../src/sentence-model/onnx-file.ts'

/** Folder of a replacement for onnxruntime-node, which computes models in JavaScript. */
export const fakeNativeRuntime = join(import.meta.dirname, '../fakes/onnxruntime-node')

/** Length of the vectors of the tiny model. */
export const tinyDimension = 16

const tokens = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', 'revoke', 'key', '##s', 'apple', 'Apple', 'query', ':']
const contrib = 'com.microsoft'

/** Creates a folder that is deleted when the test ends. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'wb-model-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/**
 * Writes a model of the kind of BERT with one layer and random weights, in the layout of Hugging Face.
 *
 * @param files  contents of files by path, in place of those that are written, or in addition to them; null for none
 */
export function writeTinyModel(folder: string, files: Readonly<Record<string, object | null>> = {}): string {
  const tokenizer = {
    normalizer: { type: 'BertNormalizer', lowercase: true, strip_accents: null },
    model: {
      type: 'WordPiece',
      unk_token: '[UNK]',
      continuing_subword_prefix: '##',
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
    },
  }
  const all: Record<string, object | null> = {
    'onnx/model.onnx': tinyOnnx(),
    'tokenizer.json': tokenizer,
    'config.json': { model_type: 'bert', hidden_size: tinyDimension, max_position_embeddings: 32 },
    ...files,
  }
  for (const [path, contents] of Object.entries(all)) {
    if (contents === null) continue
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), contents instanceof Uint8Array ? contents : JSON.stringify(contents))
  }
  return folder
}

/** @param output  shape of the output */
export function tinyOnnx(
  output: readonly (number | string)[] = ['batch', 'tokens', tinyDimension],
): Uint8Array {
  const random = randomNumbers(1)
  const tensors: OnnxTensor[] = []
  const addTensor = (name: string, shape: number[], value = () => random() * 2 - 1) => {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b) }, value)
    tensors.push({ name, type: 'float32', shape, bytes: new Uint8Array(values.buffer) })
    return name
  }
  const width = tinyDimension
  const scale = addTensor('scale', [width], () => 1)
  const bias = addTensor('bias', [width], () => 0)
  const linear = (name: string): OnnxNode => ({
    operator: 'MatMul',
    inputs: ['hidden', addTensor(`${name} weights`, [width, width])],
    outputs: [name],
  })
  const epsilon = { float: 1e-12 }
  const nodes: OnnxNode[] = [
    {
      operator: 'Gather',
      inputs: [addTensor('words', [tokens.length, width]), 'input_ids'],
      outputs: ['words of text'],
    },
    {
      operator: 'LayerNormalization',
      inputs: ['words of text', scale, bias],
      outputs: ['hidden'],
      attributes: { epsilon, axis: { int: 2 } },
    },
    linear('queries'),
    linear('keys'),
    linear('values'),
    {
      operator: 'MultiHeadAttention',
      domain: contrib,
      inputs: ['queries', 'keys', 'values'],
      outputs: ['context'],
      attributes: { num_heads: { int: 2 } },
    },
    {
      operator: 'SkipLayerNormalization',
      domain: contrib,
      inputs: ['context', 'hidden', scale, bias],
      outputs: ['last_hidden_state'],
      attributes: { epsilon },
    },
  ]
  const input = (name: string) => ({ name, type: 'int64', shape: ['batch', 'tokens'] }) as const
  return encodeOnnx({
    operators: { '': 17, [contrib]: 1 },
    tensors,
    nodes,
    inputs: ['input_ids', 'attention_mask', 'token_type_ids'].map(input),
    outputs: [{ name: 'last_hidden_state', type: 'float32', shape: output }],
  })
}
