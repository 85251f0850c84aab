import type { ConfigEnvironment } from './config-environment.ts'
import { formatKey, type KeyPath } from './key-path.ts'

const placeholder = /\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}/g

interface Interpolated {
  /** The tree with every placeholder expanded; keys are unchanged. */
  tree: unknown
  /** Original text of each value with a placeholder, by key. */
  sourceTexts: Map<string, string>
  /** Placeholders without a value or default. */
  missing: { key: string; name: string }[]
}

/**
 * Expands `${NAME}` and `${NAME:-default}` in text values at any depth. An empty variable counts as set.
 * Values of variables are not expanded again.
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
    if (Array.isArray(value)) return value.map((entry, at) => walk(entry, [...path, at]))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, entry]) => [name, walk(entry, [...path, name])]),
    )
  }

  return { tree: walk(tree, []), sourceTexts, missing }
}
