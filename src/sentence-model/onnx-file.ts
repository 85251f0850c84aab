/** Types of elements of tensors, with their numbers in the ONNX format. */
const elementTypes = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7 } as const
type ElementType = keyof typeof elementTypes

/** Numbers of attribute types in the ONNX format. */
const attributeTypes = { float: 1, int: 2, ints: 7 } as const

/** Version of the file format. Runtimes since 2021 read it. */
const irVersion = 8

/** An array whose values are part of the model. */
export interface OnnxTensor {
  readonly name: string
  readonly type: ElementType
  readonly shape: readonly number[]
  /** Values in little-endian order, row by row. */
  readonly bytes: Uint8Array
}

/** An input or an output of the model. A string in the shape names a size that is known at run time only. */
export interface OnnxValue {
  readonly name: string
  readonly type: ElementType
  readonly shape: readonly (number | string)[]
}

/** An operation. The name of an omitted optional input is empty. */
export interface OnnxNode {
  readonly operator: string
  /** Set of operators; that of the ONNX standard if absent. */
  readonly domain?: string
  readonly inputs: readonly string[]
  readonly outputs: readonly string[]
  readonly attributes?: Readonly<Record<string, { float: number } | { int: number } | { ints: number[] }>>
}

export interface OnnxModel {
  /** Version of each set of operators by domain; the ONNX standard has the domain ''. */
  readonly operators: Readonly<Record<string, number>>
  readonly tensors: readonly OnnxTensor[]
  readonly inputs: readonly OnnxValue[]
  readonly outputs: readonly OnnxValue[]
  /** Each follows those whose outputs it reads. */
  readonly nodes: readonly OnnxNode[]
}

/** Returns a model as the contents of an ONNX file (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto). */
export function encodeOnnx({ operators, tensors, inputs, outputs, nodes }: OnnxModel): Uint8Array {
  const graph = [
    ...nodes.flatMap(node => bytesField(1, encodeNode(node))),
    ...stringField(2, 'graph'),
    ...tensors.flatMap(tensor => bytesField(5, encodeTensor(tensor))),
    ...inputs.flatMap(value => bytesField(11, encodeValue(value))),
    ...outputs.flatMap(value => bytesField(12, encodeValue(value))),
  ]
  return Buffer.concat([
    ...intField(1, irVersion),
    ...stringField(2, 'workbase'),
    ...bytesField(7, graph),
    ...Object.entries(operators).flatMap(([domain, version]) =>
      bytesField(8, [...stringField(1, domain), ...intField(2, version)]),
    ),
  ])
}

/** Parts of an encoded message, which are concatenated at the end, so that weights are copied only once. */
type Parts = readonly Uint8Array[]

function encodeNode({ operator, domain = '', inputs, outputs, attributes = {} }: OnnxNode): Parts {
  return [
    ...inputs.flatMap(name => stringField(1, name)),
    ...outputs.flatMap(name => stringField(2, name)),
    ...stringField(4, operator),
    ...Object.entries(attributes).flatMap(([name, value]) => {
      const contents =
        'float' in value
          ? [...floatField(2, value.float), ...intField(20, attributeTypes.float)]
          : 'int' in value
            ? [...intField(3, value.int), ...intField(20, attributeTypes.int)]
            : [...value.ints.flatMap(int => intField(8, int)), ...intField(20, attributeTypes.ints)]
      return bytesField(5, [...stringField(1, name), ...contents])
    }),
    ...stringField(7, domain),
  ]
}

function encodeTensor({ name, type, shape, bytes }: OnnxTensor): Parts {
  return [
    ...shape.flatMap(size => intField(1, size)),
    ...intField(2, elementTypes[type]),
    ...stringField(8, name),
    ...bytesField(9, [bytes]),
  ]
}

function encodeValue({ name, type, shape }: OnnxValue): Parts {
  const sizes = shape.flatMap(size =>
    bytesField(1, typeof size === 'number' ? intField(1, size) : stringField(2, size)),
  )
  const tensorType = [...intField(1, elementTypes[type]), ...bytesField(2, sizes)]
  return [...stringField(1, name), ...bytesField(2, bytesField(1, tensorType))]
}

function stringField(field: number, text: string): Parts {
  return bytesField(field, [Buffer.from(text)])
}

function bytesField(field: number, parts: Parts): Parts {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return [varint(field * 8 + 2), varint(length), ...parts]
}

function intField(field: number, value: number): Parts {
  return [varint(field * 8), varint(value)]
}

function floatField(field: number, value: number): Parts {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return [varint(field * 8 + 5), bytes]
}

/** Returns an integer of at least 0 and below 2^31 in groups of 7 bits, the lowest first. */
function varint(value: number): Uint8Array {
  const bytes: number[] = []
  let rest = value
  for (; rest > 0x7f; rest >>>= 7) bytes.push((rest & 0x7f) | 0x80)
  bytes.push(rest)
  return Uint8Array.from(bytes)
}
