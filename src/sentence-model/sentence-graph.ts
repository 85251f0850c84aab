import type { ModelFile } from './model-file.ts'
import { encodeOnnx, type OnnxNode, type OnnxTensor } from './onnx-file.ts'
import {
  EXPANSION_WIDTH,
  HEADS,
  LAYERS,
  PANEL_COLUMNS,
  PROJECTION_WIDTH,
  SENTENCE_DIMENSION,
} from './sentence-encoder.ts'

/** Operators that ONNX Runtime adds to those of the standard. */
const contrib = 'com.microsoft'
const operators = { '': 18, [contrib]: 1 }
const epsilon = { float: 1e-12 }

/** Input of the graph: f32[1][tokens][384], the sum of the embeddings of a token and of its position. */
export const graphInput = 'embeddings'
/** Output of the graph: f32[1][tokens][384], the last layer. */
export const graphOutput = 'rows'

/**
 * Returns the layers of the sentence model as an ONNX file, with the weights of the model file.
 *
 * @param data  all tensors of the file
 */
export function createSentenceGraph(file: ModelFile, data: Uint8Array): Uint8Array {
  const tensors: OnnxTensor[] = []
  const nodes: OnnxNode[] = []

  const bytesOf = (name: string) => {
    const from = file.offsetOf(name)
    return data.subarray(from, from + file.bytesOf(name))
  }

  /** Adds a tensor of f32, and returns its name. */
  const addFloats = (name: string) => {
    const bytes = bytesOf(name)
    tensors.push({ name, type: 'float32', shape: [bytes.length / 4], bytes })
    return name
  }

  const addNode = (operator: string, node: Omit<OnnxNode, 'operator' | 'outputs'>, output: string) => {
    nodes.push({ operator, ...node, outputs: [output] })
    return output
  }

  /** Adds the product of rows with 8-bit weights, plus the bias. The rows are quantized to 8 bits with one scale. */
  const addLinear = (input: string, name: string, width: number, outputs: number) => {
    const weight = `${name}.weight`
    const bytes = unpackPanels(bytesOf(weight), width, outputs)
    tensors.push({ name: weight, type: 'int8', shape: [width, outputs], bytes })
    const inputs = [input, weight, addFloats(`${name}.scale`), '', addFloats(`${name}.bias`)]
    return addNode('DynamicQuantizeMatMul', { domain: contrib, inputs }, `${name}.product`)
  }

  const addNorm = (input: string, addend: string, name: string, output: string) => {
    const inputs = [input, addend, addFloats(`${name}.weight`), addFloats(`${name}.bias`)]
    return addNode('SkipLayerNormalization', { domain: contrib, inputs, attributes: { epsilon } }, output)
  }

  const norm = ['embeddings.norm.weight', 'embeddings.norm.bias'].map(addFloats)
  const attributes = { epsilon, axis: { int: 2 } }
  let hidden = addNode('LayerNormalization', { inputs: [graphInput, ...norm], attributes }, 'hidden')
  for (let layer = 0; layer < LAYERS; layer++) {
    const name = `layers.${layer}`
    const projection = addLinear(hidden, `${name}.projection`, SENTENCE_DIMENSION, PROJECTION_WIDTH)
    const parts = ['queries', 'keys', 'values'].map(part => `${name}.${part}`)
    nodes.push({
      operator: 'Split',
      inputs: [projection],
      outputs: parts,
      attributes: { axis: { int: 2 }, num_outputs: { int: parts.length } },
    })
    const heads = { num_heads: { int: HEADS } }
    const context = addNode(
      'MultiHeadAttention',
      { domain: contrib, inputs: parts, attributes: heads },
      `${name}.context`,
    )
    const attention = addLinear(context, `${name}.attention`, SENTENCE_DIMENSION, SENTENCE_DIMENSION)
    const middle = addNorm(attention, hidden, `${name}.attention.norm`, `${name}.middle`)
    const expansion = addLinear(middle, `${name}.expansion`, SENTENCE_DIMENSION, EXPANSION_WIDTH)
    const activation = addNode('Gelu', { domain: contrib, inputs: [expansion] }, `${name}.activation`)
    const contraction = addLinear(activation, `${name}.contraction`, EXPANSION_WIDTH, SENTENCE_DIMENSION)
    const output = layer === LAYERS - 1 ? graphOutput : `${name}.hidden`
    hidden = addNorm(contraction, middle, `${name}.norm`, output)
  }

  const shape = [1, 'tokens', SENTENCE_DIMENSION]
  return encodeOnnx({
    operators,
    tensors,
    nodes,
    inputs: [{ name: graphInput, type: 'float32', shape }],
    outputs: [{ name: graphOutput, type: 'float32', shape }],
  })
}

/**
 * Returns weights as i8[width][outputs].
 *
 * @param packed  weights in the order of the kernels: panels of 16 outputs, and in these two inputs at a time
 */
function unpackPanels(packed: Uint8Array, width: number, outputs: number): Uint8Array {
  const weights = new Uint8Array(packed.length)
  let at = 0
  for (let panel = 0; panel < outputs; panel += PANEL_COLUMNS)
    for (let input = 0; input < width; input += 2) {
      const first = input * outputs + panel
      for (let column = 0; column < PANEL_COLUMNS; column++) {
        weights[first + column] = packed[at++]!
        weights[first + outputs + column] = packed[at++]!
      }
    }
  return weights
}
