/** Maximum number of bytes of an array, and of an unpacked stream. */
const unpackedBytesMax = 128_000_000

/**
 * Limits the sizes of byte arrays and of unpacked streams on this thread. PDF.js unpacks streams without a limit, into arrays
 * outside of the heap, which the heap limit of a thread does not include. Larger ones throw a RangeError.
 */
export function limitUnpacking(): void {
  globalThis.Uint8Array = withSizeLimit(Uint8Array)
  globalThis.Int8Array = withSizeLimit(Int8Array)
  globalThis.DecompressionStream = LimitedDecompressionStream as typeof DecompressionStream
}

/**
 * Returns a class that creates arrays of the given class, and refuses larger ones. It is not a proxy, because a proxy also
 * delays each `instanceof`, and took half of the time in which a PDF is read.
 */
function withSizeLimit<T extends Uint8ArrayConstructor | Int8ArrayConstructor>(arrayClass: T): T {
  function SmallArray(...values: [number]) {
    if (typeof values[0] === 'number') requireSmall(values[0])
    return new.target === SmallArray
      ? new arrayClass(...values)
      : (Reflect.construct(arrayClass, values, new.target!) as object)
  }
  SmallArray.prototype = arrayClass.prototype
  return Object.setPrototypeOf(SmallArray, arrayClass) as T
}

const unlimited = globalThis.DecompressionStream

class LimitedDecompressionStream {
  readonly readable: ReadableStream<Uint8Array>
  readonly writable: WritableStream

  constructor(format: ConstructorParameters<typeof DecompressionStream>[0]) {
    const { readable, writable } = new unlimited(format)
    let bytes = 0
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(piece, controller) {
        bytes += piece.byteLength
        requireSmall(bytes)
        controller.enqueue(piece)
      },
    })
    this.writable = writable
    this.readable = readable.pipeThrough(counter)
  }
}

function requireSmall(bytes: number): void {
  if (bytes > unpackedBytesMax) throw new RangeError(`${bytes} unpacked bytes are too many`)
}
