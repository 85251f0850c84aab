import { nearest } from '../terminal/nearest.ts'
import type { Choices } from './choices.ts'
import { isParseError } from './exit.ts'

/** What oclif tells of a command line that does not parse, besides its message. */
interface ParseFault {
  /** Arguments that are missing, or words that nothing asked for. */
  readonly args?: readonly (string | MissingArgument)[]
  /** Flags that the command does not have. */
  readonly flags?: readonly string[]
}

/** An argument that is missing, as its command declares it. */
export interface MissingArgument {
  readonly name: string
  readonly description?: string
  /** What there is to choose from, where it names something that is there. */
  readonly choices?: Choices
  readonly mayBeNew?: boolean
  /** Question for a path, where the argument is one. */
  readonly pathQuestion?: string
}

/** The arguments that are missing; none where something else is wrong. */
export function missingArguments(error: unknown): MissingArgument[] {
  if (!isParseError(error)) return []
  return ((error as ParseFault).args ?? []).filter(arg => typeof arg === 'object')
}

/** What is wrong with a command line, in our own words where oclif's are about parsing. */
export function parseMessage(error: Error): string {
  const { flags = [] } = error as ParseFault
  const missing = missingArguments(error).map(
    ({ name, description }) => `${name.toUpperCase()} is missing${description ? `: ${description}` : ''}`,
  )
  if (missing.length > 0) return missing.join('\n')
  if (flags.length > 0) return `there is no flag ${flags.join(', ')}`
  return error.message
    .replace(/\n?See more help with --help\s*/g, '')
    .replace(/^The following errors? occurred:\s*/, '')
    .replace(/^Parsing (--[\w-]+)\s+/, '$1: ')
    .trim()
}

/** Flags that were probably meant, as lines to read. */
export function flagsMeant(error: unknown, known: readonly string[]): string[] {
  if (!isParseError(error)) return []
  const meant = ((error as ParseFault).flags ?? []).flatMap(flag => {
    const close = nearest(
      flag,
      known.map(name => `--${name}`),
    )
    return close ? [close] : []
  })
  return meant.length > 0 ? [`did you mean ${meant.join(', ')}?`] : []
}
