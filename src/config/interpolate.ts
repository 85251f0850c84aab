import type { Environment } from './environment.ts'
import { formatKey, type KeyPath } from './key-path.ts'

const placeholder = /\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}/g

interface Interpolated {
  /** The tree with every placeholder expanded; keys stay as they are. */
  tree: unknown
  /** Text as it was written, by the key of each value that held a placeholder. */
  written: Map<string, string>
  /** Placeholders without value and default. */
  missing: { key: string; name: string }[]
}

/**
 * Expand `${NAME}` and `${NAME:-default}` in text values at any depth. A variable that is set but empty counts as
 * set; what a variable holds is not expanded again.
 *
 * @see docs/configuration.md#what-the-file-may-hold
 */
export function interpolate(tree: unknown, environment: Environment): Interpolated {
  const written = new Map<string, string>()
  const missing: Interpolated['missing'] = []

  function expand(text: string, path: KeyPath): string {
    return text.replace(placeholder, (_, name: string, fallback: string | undefined) => {
      const value = environment.get(name) ?? fallback
      written.set(formatKey(path), text)
      if (value === undefined) missing.push({ key: formatKey(path), name })
      return value ?? ''
    })
  }

  function walk(value: unknown, path: KeyPath): unknown {
    if (typeof value === 'string') return expand(value, path)
    if (Array.isArray(value)) return value.map((entry, at) => walk(entry, [...path, at]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, entry]) => [name, walk(entry, [...path, name])]),
    )
  }

  return { tree: walk(tree, []), written, missing }
}
