import { nearestMatch } from '../../base/nearest-match.ts'
import type { Choices } from './choices.ts'
import { isParseError } from './exit.ts'

/** Details of an oclif parse error. */
interface ParseErrorDetails {
  /** Missing arguments, or unexpected words. */
  readonly args?: readonly (string | MissingArgument)[]
  /** Flags that the command does not have. */
  readonly flags?: readonly string[]
}

/** Declaration of a missing argument. */
export interface MissingArgument {
  readonly name: string
  readonly description?: string
  /** Choices for an argument that refers to an existing resource. */
  readonly choices?: Choices
  readonly mayBeNew?: boolean
  /** Question to ask for an argument that is a path. */
  readonly pathQuestion?: string
}

/** Returns the missing arguments; empty for other errors. */
export function missingArguments(error: unknown): MissingArgument[] {
  if (!isParseError(error)) return []
  return ((error as ParseErrorDetails).args ?? []).filter(arg => typeof arg === 'object')
}

/** Returns the message of a parse or usage error, without the phrases that oclif adds. */
export function parseMessage(error: Error): string {
  const { flags = [] } = error as ParseErrorDetails
  const missing = missingArguments(error).map(
    ({ name, description }) => `${name.toUpperCase()} is missing${description ? `: ${description}` : ''}`,
  )
  if (missing.length > 0) return missing.join('\n')
  if (flags.length > 0) return `unknown flag ${flags.join(', ')}`
  return error.message
    .replace(/\n?See more help with --help\s*/g, '')
    .replace(/^The following errors? occurred:\s*/, '')
    .replace(/^Parsing (--[\w-]+)\s+(?=\1 )/, '')
    .replace(/^Parsing (--[\w-]+)\s+/, '$1: ')
    .trim()
}

/** Returns a suggestion for misspelled flags; empty if no flag of the command is similar. */
export function suggestFlags(error: unknown, flagNames: readonly string[]): string[] {
  if (!isParseError(error)) return []
  const suggestedFlags = ((error as ParseErrorDetails).flags ?? []).flatMap(flag => {
    const nearest = nearestMatch(
      flag,
      flagNames.map(name => `--${name}`),
    )
    return nearest ? [nearest] : []
  })
  return suggestedFlags.length > 0 ? [`did you mean ${suggestedFlags.join(', ')}?`] : []
}
