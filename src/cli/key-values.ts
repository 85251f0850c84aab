import { UsageError } from './faults.ts'

/**
 * `NAME=VALUE` pairs of a flag that is given several times.
 *
 * @throws UsageError a pair has no `=`
 */
export function keyValues(pairs: readonly string[], flag: string): Record<string, string> {
  const entries = pairs.map(pair => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`${flag} "${pair}" has no NAME=VALUE`)
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return Object.fromEntries(entries)
}
