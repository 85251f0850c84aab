import * as Flags from '@oclif/core/flags'
import { UsageError } from '../errors.ts'

function globalOptions(helpValue?: string) {
  return { helpGroup: 'GLOBAL', ...(helpValue && { helpValue }) }
}

/** Flags of every command. */
export const globalFlags = {
  workspace: Flags.string({ char: 'w', summary: 'workspace name or ID', ...globalOptions('NAME') }),
  profile: Flags.string({ summary: 'profile name', ...globalOptions('NAME') }),
  url: Flags.string({ summary: 'address of the runtime', ...globalOptions() }),
  local: Flags.boolean({
    summary: 'use the runtime on this machine, and ignore the profile',
    helpGroup: 'GLOBAL',
  }),
  'data-dir': Flags.string({
    summary: 'data directory of the runtime on this machine',
    ...globalOptions('DIR'),
  }),
  config: Flags.string({
    summary: 'configuration file of the runtime on this machine',
    ...globalOptions('FILE'),
  }),
  json: Flags.boolean({ summary: 'print the result as JSON', helpGroup: 'GLOBAL' }),
  jq: Flags.string({ summary: 'filter the JSON output with a jq expression', ...globalOptions('EXPR') }),
  quiet: Flags.boolean({ char: 'q', summary: 'print only the result', helpGroup: 'GLOBAL' }),
  debug: Flags.boolean({ summary: 'print requests and error details', helpGroup: 'GLOBAL' }),
  'no-color': Flags.boolean({ summary: 'print without colors', helpGroup: 'GLOBAL' }),
  'no-wait': Flags.boolean({
    summary: 'leave background work to the next ingest or server',
    helpGroup: 'GLOBAL',
  }),
  credential: Flags.option({
    options: ['key', 'login'] as const,
    summary: 'credential to send if you have both a key and a login',
    helpGroup: 'GLOBAL',
  })(),
  'insecure-http': Flags.boolean({
    summary: 'allow sending credentials over http:// to other machines',
    helpGroup: 'GLOBAL',
  }),
  'as-operator': Flags.boolean({
    summary: 'act as the owner of the data directory, with all permissions',
    helpGroup: 'GLOBAL',
  }),
}

/** `--limit` flag of list commands. */
export const limitFlag = Flags.integer({
  min: 1,
  summary: 'maximum number of rows [50 in a terminal, otherwise all]',
})

/** `--yes` flag of commands that ask for confirmation. */
export const yesFlag = Flags.boolean({ char: 'y', summary: 'skip the confirmation' })

/**
 * Parses the `NAME=VALUE` pairs of a flag that can be repeated.
 *
 * @throws UsageError  a pair has no `=`, or no name before it
 */
export function parseKeyValues(pairs: readonly string[], flag: string): Record<string, string> {
  const entries = pairs.map(pair => {
    const separator = pair.indexOf('=')
    if (separator < 1) throw new UsageError(`${flag} "${pair}" is not NAME=VALUE`)
    return [pair.slice(0, separator), pair.slice(separator + 1)] as const
  })
  return Object.fromEntries(entries)
}
