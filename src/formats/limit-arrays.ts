/** Maximum size in bytes of an array. */
const arrayBytesMax = 256_000_000

/**
 * Limits the size of byte arrays that are created on this thread. PDF.js unpacks streams without a limit, into arrays outside of
 * the heap, which the heap limit of a thread does not include. An array that is too large throws a RangeError.
 */
export function limitArrays(): void {
  globalThis.Uint8Array = new Proxy(Uint8Array, {
    construct(target, values: [unknown], newTarget) {
      if (typeof values[0] === 'number' && values[0] > arrayBytesMax)
        throw new RangeError(`an array of ${values[0]} bytes is too large`)
      return Reflect.construct(target, values, newTarget) as object
    },
  })
}
