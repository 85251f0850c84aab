import type { Clock } from '../../base/clock.ts'
import { TimedOut, within } from '../../base/deadline.ts'
import { reportOf } from '../command/report.ts'

/** What was found where one thing was looked at. */
export interface Finding {
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly detail: string
  /** A line to type, as it stands, that mends it or leads there. */
  readonly mend?: string
}

/** A finding under the name of what was looked at; several of one name where several things are wrong there. */
export interface Check extends Finding {
  readonly name: string
}

/** Half a second more than a keychain, or a runtime that asks a provider, gives itself: these say what they wait for. */
const timeoutMs = 3_500

export function ok(detail: string): Finding {
  return { state: 'ok', detail }
}

export function warning(detail: string, mend?: string): Finding {
  return { state: 'warning', detail, ...(mend !== undefined && { mend }) }
}

export function failed(detail: string, mend?: string): Finding {
  return { state: 'failed', detail, ...(mend !== undefined && { mend }) }
}

export function skipped(detail: string, mend?: string): Finding {
  return { state: 'skipped', detail, ...(mend !== undefined && { mend }) }
}

/** Something to look at. */
export interface Look {
  readonly name: string
  readonly clock: Clock
  /** Ends all looking. */
  readonly signal: AbortSignal
  /** What it throws is a finding, too. */
  look(signal: AbortSignal): Promise<Finding | Finding[]>
  /** What it means that it takes too long. */
  readonly late?: Finding
}

/** Look, for so long and no longer. */
export async function check({ name, clock, signal, look, late }: Look): Promise<Check[]> {
  const found = await within(clock, timeoutMs, look, signal).catch(error => {
    signal.throwIfAborted()
    return error instanceof TimedOut && late ? late : faultFound(error)
  })
  return [found].flat().map(finding => ({ name, ...finding }))
}

/** An error as a finding. */
export function faultFound(error: unknown): Finding {
  if (error instanceof TimedOut) return failed(`no answer within ${timeoutMs / 1_000} s`)
  const { message, next } = reportOf(error)
  return failedWith(message, next.at(-1))
}

/**
 * A failure as an error tells it.
 *
 * @param line  a line to type, with or without what it does, or words to know
 */
export function failedWith(detail: string, line: string | undefined): Finding {
  if (line === undefined) return failed(detail)
  return /^(?:wb|chmod|unset) /.test(line)
    ? failed(detail, line.split('    ')[0])
    : failed(`${detail}; ${line}`)
}
