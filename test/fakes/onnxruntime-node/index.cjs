/**
 * A replacement for onnxruntime-node that computes models in JavaScript. It supports only the operators that the tests need, and
 * follows the definitions in https://onnx.ai/onnx/operators/ and
 * https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md.
 */

const { readFileSync } = require('node:fs')

class Tensor {
  constructor(type, data, dims) {
    this.type = type
    this.data = data
    this.dims = dims
  }
}

class InferenceSession {
  static async create(model) {
    return new InferenceSession(parseGraph(typeof model === 'string' ? readFileSync(model) : model))
  }

  constructor({ tensors, nodes, inputs, outputs }) {
    this.tensors = tensors
    this.nodes = nodes
    this.inputNames = inputs
    this.outputNames = outputs
  }

  async run(inputs) {
    const values = new Map([...this.tensors, ...Object.entries(inputs)])
    for (const { operator, inputs, outputs, attributes } of this.nodes) {
      if (!operators[operator]) throw new Error(`no operator ${operator}`)
      const results = operators[operator](
        inputs.map(name => values.get(name)),
        attributes,
      )
      for (const [at, result] of [results].flat().entries()) values.set(outputs[at], result)
    }
    return Object.fromEntries(this.outputNames.map(name => [name, values.get(name)]))
  }

  async release() {}
}

const operators = {
  Gather: ([table, indices]) => {
    const width = table.dims.at(-1)
    const rows = Array.from(indices.data, index =>
      table.data.subarray(Number(index) * width, (Number(index) + 1) * width),
    )
    return floats(
      rows.flatMap(row => [...row]),
      [...indices.dims, width],
    )
  },
  Add: ([a, b]) =>
    floats(
      a.data.map((value, at) => value + b.data[at % b.data.length]),
      a.dims,
    ),
  LayerNormalization: ([x, scale, bias], { epsilon }) => normalize(x, scale, bias, epsilon),
  SkipLayerNormalization: ([x, skip, scale, bias], { epsilon }) =>
    normalize(operators.Add([x, skip]), scale, bias, epsilon),
  Gelu: ([x]) =>
    floats(
      x.data.map(value => (value / 2) * (1 + erf(value / Math.SQRT2))),
      x.dims,
    ),
  Split: ([x], { num_outputs: parts }) => {
    const width = x.dims.at(-1)
    const part = width / parts
    return Array.from({ length: parts }, (_, index) =>
      floats(
        x.data.filter((_, at) => Math.floor((at % width) / part) === index),
        [...x.dims.slice(0, -1), part],
      ),
    )
  },
  MatMul: ([x, weights]) => product(x, weights, () => 1),
  DynamicQuantizeMatMul: ([x, weights, scales, , bias]) => {
    const low = Math.min(0, ...minMax(x.data))
    const high = Math.max(0, ...minMax(x.data))
    const scale = (high - low) / 255
    const zero = Math.round(-low / scale)
    const quantized = x.data.map(value => Math.max(0, Math.min(255, Math.round(value / scale) + zero)) - zero)
    const result = product(floats(quantized, x.dims), weights, column => scales.data[column] * scale)
    return operators.Add([result, bias])
  },
  MultiHeadAttention: ([queries, keys, values], { num_heads: heads }) => {
    const [, rows, width] = queries.dims
    const size = width / heads
    const out = new Float32Array(rows * width)
    for (let head = 0; head < heads; head++)
      for (let row = 0; row < rows; row++) {
        const scores = new Float32Array(rows)
        for (let other = 0; other < rows; other++)
          for (let at = head * size; at < (head + 1) * size; at++)
            scores[other] +=
              (queries.data[row * width + at] * keys.data[other * width + at]) / Math.sqrt(size)
        const max = Math.max(...scores)
        const powers = scores.map(score => Math.exp(score - max))
        const sum = powers.reduce((total, power) => total + power, 0)
        for (let other = 0; other < rows; other++)
          for (let at = head * size; at < (head + 1) * size; at++)
            out[row * width + at] += (powers[other] / sum) * values.data[other * width + at]
      }
    return floats(out, queries.dims)
  },
}

function floats(data, dims) {
  return new Tensor('float32', Float32Array.from(data), dims)
}

function minMax(values) {
  let [min, max] = [Infinity, -Infinity]
  for (const value of values) {
    min = Math.min(min, value)
    max = Math.max(max, value)
  }
  return [min, max]
}

function product(x, weights, scaleOf) {
  const [width, columns] = weights.dims
  const rows = x.data.length / width
  const out = new Float32Array(rows * columns)
  for (let row = 0; row < rows; row++)
    for (let at = 0; at < width; at++) {
      const value = x.data[row * width + at]
      for (let column = 0; column < columns; column++)
        out[row * columns + column] += value * weights.data[at * columns + column]
    }
  return floats(
    out.map((sum, at) => sum * scaleOf(at % columns)),
    [...x.dims.slice(0, -1), columns],
  )
}

function normalize(x, scale, bias, epsilon) {
  const width = scale.data.length
  const out = new Float32Array(x.data.length)
  for (let from = 0; from < out.length; from += width) {
    const row = x.data.subarray(from, from + width)
    const mean = row.reduce((sum, value) => sum + value, 0) / width
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width
    for (let at = 0; at < width; at++)
      out[from + at] = ((row[at] - mean) / Math.sqrt(variance + epsilon)) * scale.data[at] + bias.data[at]
  }
  return floats(out, x.dims)
}

/** The error function, with an error below 1.5e-7 (Abramowitz and Stegun 7.1.26). */
function erf(x) {
  const t = 1 / (1 + 0.3275911 * Math.abs(x))
  const polynomial =
    t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
  return Math.sign(x) * (1 - polynomial * Math.exp(-x * x))
}

function parseGraph(bytes) {
  const graph = parse(parse(bytes)[7][0])
  const names = fields => (fields ?? []).map(String)
  return {
    tensors: (graph[5] ?? []).map(parseTensor),
    nodes: graph[1].map(node => {
      const { 1: inputs, 2: outputs, 4: operator, 5: attributes = [] } = parse(node)
      return {
        operator: String(operator[0]),
        inputs: names(inputs),
        outputs: names(outputs),
        attributes: Object.fromEntries(attributes.map(parseAttribute)),
      }
    }),
    inputs: graph[11].map(value => String(parse(value)[1][0])),
    outputs: graph[12].map(value => String(parse(value)[1][0])),
  }
}

function parseTensor(bytes) {
  const { 1: dims = [], 2: type, 8: name, 9: raw } = parse(bytes)
  const Values = { 1: Float32Array, 3: Int8Array, 7: BigInt64Array }[type[0]]
  return [String(name[0]), new Tensor(String(type[0]), new Values(Uint8Array.from(raw[0]).buffer), dims)]
}

function parseAttribute(bytes) {
  const { 1: name, 2: float, 3: int, 8: ints } = parse(bytes)
  return [String(name[0]), float ? float[0].readFloatLE() : int ? int[0] : ints]
}

/** Returns the fields of a protobuf message: lists of integers and of bytes by field number. */
function parse(bytes) {
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  const fields = {}
  let at = 0
  const varint = () => {
    let value = 0
    for (let factor = 1; ; factor *= 128) {
      if (at >= message.length) throw new Error('the file ends too early')
      const byte = message[at++]
      value += (byte & 127) * factor
      if (byte < 128) return value
    }
  }
  const take = length => {
    at += length
    return message.subarray(at - length, at)
  }
  while (at < message.length) {
    const key = varint()
    const value = { 0: varint, 2: () => take(varint()), 5: () => take(4) }[key & 7]()
    fields[key >> 3] ??= []
    fields[key >> 3].push(value)
  }
  return fields
}

module.exports = { InferenceSession, Tensor }
