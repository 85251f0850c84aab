import * as Flags from '@oclif/core/flags'
import { UsageError } from '../faults.ts'

function everywhere(helpValue?: string) {
  return { helpGroup: 'GLOBAL', ...(helpValue && { helpValue }) }
}

/** Flags of every command. */
export const globalFlags = {
  workspace: Flags.string({ char: 'w', summary: 'workspace, by name or id', ...everywhere('NAME') }),
  profile: Flags.string({ summary: 'profile, by name', ...everywhere('NAME') }),
  url: Flags.string({ summary: 'address of a runtime', ...everywhere() }),
  local: Flags.boolean({
    summary: 'use the runtime of this machine, whatever the profile says',
    helpGroup: 'GLOBAL',
  }),
  'data-dir': Flags.string({
    summary: 'data directory of the runtime on this machine',
    ...everywhere('DIR'),
  }),
  config: Flags.string({
    summary: 'configuration file of the runtime on this machine',
    ...everywhere('FILE'),
  }),
  json: Flags.boolean({ summary: "print the API's own object", helpGroup: 'GLOBAL' }),
  jq: Flags.string({ summary: 'print what a jq expression makes of that object', ...everywhere('EXPR') }),
  quiet: Flags.boolean({ char: 'q', summary: 'print the result alone', helpGroup: 'GLOBAL' }),
  debug: Flags.boolean({ summary: 'print each request, and the details of an error', helpGroup: 'GLOBAL' }),
  'no-color': Flags.boolean({ summary: 'print without colours', helpGroup: 'GLOBAL' }),
  'no-wait': Flags.boolean({ summary: 'leave work that is due to the next process', helpGroup: 'GLOBAL' }),
  credential: Flags.option({
    options: ['key', 'login'] as const,
    summary: 'send this one where there are both',
    helpGroup: 'GLOBAL',
  })(),
  'insecure-http': Flags.boolean({
    summary: 'send a key over http:// to another machine',
    helpGroup: 'GLOBAL',
  }),
  'as-operator': Flags.boolean({
    summary: 'act as the owner of the data directory, in this process',
    helpGroup: 'GLOBAL',
  }),
}

/** `--limit` of commands that list. */
export const limitFlag = Flags.integer({ min: 1, summary: 'how many at most [50 in a terminal, else all]' })
/** `--yes` of commands that delete. */
export const yesFlag = Flags.boolean({ char: 'y', summary: 'go on without being asked' })

/**
 * Parses the `NAME=VALUE` pairs of a flag that can be repeated.
 *
 * @throws UsageError  a pair has no `=`
 */
export function keyValues(pairs: readonly string[], flag: string): Record<string, string> {
  const entries = pairs.map(pair => {
    const at = pair.indexOf('=')
    if (at < 1) throw new UsageError(`${flag} "${pair}" has no NAME=VALUE`)
    return [pair.slice(0, at), pair.slice(at + 1)] as const
  })
  return Object.fromEntries(entries)
}
