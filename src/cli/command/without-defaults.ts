/**
 * Returns flags without the defaults at the end of their summaries, for commands that change an object. Such a command
 * changes only the fields whose flags are set.
 */
export function withoutDefaults<F extends Readonly<Record<string, { summary?: string }>>>(flags: F): F {
  const entries = Object.entries(flags).map(([name, flag]) => {
    const summary = flag.summary?.replace(/ \[[^\]]*\]$/, '')
    return [name, { ...flag, ...(summary && { summary }) }]
  })
  return Object.fromEntries(entries) as F
}
