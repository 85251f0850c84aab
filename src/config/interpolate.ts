import type { ConfigEnvironment } from './config-environment.ts'
import { formatKey, type KeyPath } from './key-path.ts'

const placeholder = /\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}/g

interface Interpolated {
  /** The tree with all placeholders in values expanded. Keys are unchanged. */
  tree: unknown
  /** Original text of the values that have a placeholder, by key. */
  sourceTexts: Map<string, string>
  /** Placeholders without a value or default. */
  missing: { key: string; name: string }[]
}

/**
 * Expands `${NAME}` and `${NAME:-default}` in strings at any depth. A variable with an empty value counts as set.
 * Placeholders in the values of variables are not expanded.
 *
 * @see docs/configuration.md#format-of-the-file
 */
export function interpolate(tree: unknown, environment: ConfigEnvironment): Interpolated {
  const sourceTexts = new Map<string, string>()
  const missing: Interpolated['missing'] = []

  function expand(text: string, path: KeyPath): string {
    return text.replace(placeholder, (_, name: string, fallback: string | undefined) => {
      const value = environment.get(name) ?? fallback
      sourceTexts.set(formatKey(path), text)
      if (value === undefined) missing.push({ key: formatKey(path), name })
      return value ?? ''
    })
  }

  function walk(value: unknown, path: KeyPath): unknown {
    if (typeof value === 'string') return expand(value, path)
    if (Array.isArray(value)) return value.map((entry, index) => walk(entry, [...path, index]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, entry]) => [name, walk(entry, [...path, name])]),
    )
  }

  return { tree: walk(tree, []), sourceTexts, missing }
}
