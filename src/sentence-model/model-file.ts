import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

/** Version of the layout that `scripts/build-sentence-model.mjs` writes. */
const LAYOUT_VERSION = '1'

/** Maximum size of a header in bytes. */
const HEADER_BYTES_MAX = 65_536

interface TensorEntry {
  readonly dtype: 'F32' | 'I8' | 'U8'
  readonly data_offsets: readonly [from: number, to: number]
}

/** A model file that is open for reading, in the format safetensors. */
export class ModelFile {
  readonly #path: string
  readonly #file: number
  readonly #dataStart: number
  readonly #tensors: Readonly<Record<string, TensorEntry>>
  /** Number of bytes of all tensors. */
  readonly dataBytes: number

  /** @throws Error  the file is missing, incomplete, or has another layout */
  constructor(path: string) {
    this.#path = path
    this.#file = openSync(path, 'r')
    try {
      const length = Number(this.#read(Buffer.alloc(8), 0).readBigUInt64LE())
      if (length > HEADER_BYTES_MAX) throw this.#damaged('its header is too long')
      const { __metadata__, ...tensors } = this.#parse(this.#read(Buffer.alloc(length), 8))
      if (__metadata__?.layout !== LAYOUT_VERSION)
        throw this.#damaged(`its layout is ${__metadata__?.layout} instead of ${LAYOUT_VERSION}`)
      this.#dataStart = 8 + length
      this.#tensors = tensors
      this.dataBytes = Math.max(...Object.values(this.#tensors).map(({ data_offsets: [, to] }) => to))
      const { size } = fstatSync(this.#file)
      if (size !== this.#dataStart + this.dataBytes)
        throw this.#damaged(`it has ${size} bytes instead of ${this.#dataStart + this.dataBytes}`)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Reads all tensors into `target`. */
  readData(target: Uint8Array): void {
    this.#read(target, this.#dataStart)
  }

  /** Reads one tensor. */
  readTensor(name: string): Uint8Array {
    const [from, to] = this.#tensor(name)
    return this.#read(new Uint8Array(to - from), this.#dataStart + from)
  }

  /** Returns the position of a tensor in the data, in bytes. */
  offsetOf(name: string): number {
    return this.#tensor(name)[0]
  }

  /** Returns the number of bytes of a tensor. */
  bytesOf(name: string): number {
    const [from, to] = this.#tensor(name)
    return to - from
  }

  close(): void {
    closeSync(this.#file)
  }

  #tensor(name: string): readonly [from: number, to: number] {
    const tensor = this.#tensors[name]
    if (!tensor) throw this.#damaged(`it has no tensor ${name}`)
    return tensor.data_offsets
  }

  #read<T extends Uint8Array>(target: T, position: number): T {
    for (let at = 0; at < target.length; ) {
      const count = readSync(this.#file, target, at, target.length - at, position + at)
      if (count === 0) throw this.#damaged('it ends too early')
      at += count
    }
    return target
  }

  #parse(header: Buffer): Record<string, TensorEntry> & { __metadata__?: { layout?: string } } {
    try {
      return JSON.parse(header.toString('utf8'))
    } catch {
      throw this.#damaged('its header is not JSON')
    }
  }

  #damaged(reason: string): Error {
    return new Error(`cannot read ${this.#path}: ${reason}; run \`npm run build\` or install Workbase again`)
  }
}
