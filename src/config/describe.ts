import { formatKey, leaves } from './key-path.ts'
import type { Source } from './load.ts'
import type { Config } from './schema.ts'

/** One value of the configuration, as `wb config show` prints it. */
export interface Described {
  readonly key: string
  /** References and placeholders as they were written, never what they stand for. */
  readonly value: unknown
  /** `default`, `file`, the variable, or the flag. */
  readonly source: string
}

/** Every value of a configuration and where it came from, in the order of the file. */
export function describe(config: Config, sources: ReadonlyMap<string, Source>): Described[] {
  return [...leaves(config)].map(({ path, value }) => {
    const key = formatKey(path)
    const source = sources.get(key)
    return { key, value: source?.written ?? value, source: source?.name ?? source?.from ?? 'default' }
  })
}
