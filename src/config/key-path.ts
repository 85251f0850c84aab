export type KeyPath = readonly PropertyKey[]

/** Formats a path: `['mcp', 'stdioServers', 0, 'id']` becomes `mcp.stdioServers[0].id`. */
export function formatKey(path: KeyPath): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`
    const name = String(part)
    if (!/^[\w-]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`
    return text === '' ? name : `${text}.${name}`
  }, '')
}

function isTree(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** Yields the scalars, empty lists and empty maps of a tree, in the order of the tree. */
export function* leavesOf(value: unknown, path: KeyPath = []): Generator<{ path: KeyPath; value: unknown }> {
  const entries = isTree(value) ? Object.entries(value) : []
  if (entries.length === 0) yield { path, value }
  const isList = Array.isArray(value)
  for (const [name, entry] of entries) yield* leavesOf(entry, [...path, isList ? Number(name) : name])
}

/** Returns true if a tree has a value at a path. */
export function hasPath(tree: unknown, path: KeyPath): boolean {
  let value: unknown = tree
  for (const part of path) {
    if (!isTree(value) || !Object.hasOwn(value, part)) return false
    value = (value as Record<PropertyKey, unknown>)[part]
  }
  return value !== undefined
}
