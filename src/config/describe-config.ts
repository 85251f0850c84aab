import { formatKey, leavesOf } from './key-path.ts'
import type { ValueSource } from './load-config.ts'
import type { Config } from './schema.ts'

/** A configuration value, as `wb config show` prints it. */
export interface ConfigValue {
  readonly key: string
  /** Value in which references and placeholders are not resolved. */
  readonly value: unknown
  /** `default`, `file`, or the name of the variable or flag. */
  readonly source: string
}

/** Returns every value of a configuration with its source, in the order of the schema. */
export function describeConfig(config: Config, sources: ReadonlyMap<string, ValueSource>): ConfigValue[] {
  return [...leavesOf(config)].map(({ path, value }) => {
    const key = formatKey(path)
    const source = sources.get(key)
    return { key, value: source?.sourceText ?? value, source: source?.name ?? source?.from ?? 'default' }
  })
}
