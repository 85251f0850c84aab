/** Returns a function that creates a value at its first call, and returns it at each later one. */
export function once<T>(create: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: create() }
    return made.value
  }
}
