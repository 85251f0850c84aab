import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { toReport } from '../command/report.ts'

/** Result of one check. */
export interface Finding {
  readonly state: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly detail: string
  /** Command that fixes the problem or shows more details. */
  readonly fix?: string
}

/** A finding with the name of its check. A check with several problems has several findings. */
export interface Check extends Finding {
  readonly name: string
}

/**
 * Timeout of a check. The keychain and the provider probe of the runtime time out half a second earlier, because
 * their errors are more precise.
 */
const timeoutMs = 3_500

const findingFactory =
  (state: Finding['state']) =>
  (detail: string, fix?: string): Finding => ({ state, detail, ...(fix !== undefined && { fix }) })

export const ok = findingFactory('ok')
export const warning = findingFactory('warning')
export const failed = findingFactory('failed')
export const skipped = findingFactory('skipped')

/** A check to run. */
export interface CheckRun {
  readonly name: string
  readonly clock: Clock
  /** Aborts all checks. */
  readonly signal: AbortSignal
  /** Runs the check. Errors are converted to findings. */
  run(signal: AbortSignal): Promise<Finding | Finding[]>
  /** Finding for a check that takes too long. */
  readonly onTimeout?: Finding
}

/** Runs a check with a time limit of {@link timeoutMs}. */
export async function runCheck({ name, clock, signal, run, onTimeout }: CheckRun): Promise<Check[]> {
  const findings = await withTimeout(clock, timeoutMs, run, signal).catch(error => {
    signal.throwIfAborted()
    return error instanceof TimedOut && onTimeout ? onTimeout : findingFromError(error)
  })
  return [findings].flat().map(finding => ({ name, ...finding }))
}

/** Converts an error to a finding. */
export function findingFromError(error: unknown): Finding {
  if (error instanceof TimedOut) return failed(`no response within ${timeoutMs / 1_000} s`)
  const { message, next } = toReport(error)
  return failedWithHint(message, next.at(-1))
}

/**
 * Returns a failed finding with a suggestion.
 *
 * @param suggestion  a command, optionally with a description after four spaces, or a sentence
 */
export function failedWithHint(detail: string, suggestion: string | undefined): Finding {
  if (suggestion === undefined) return failed(detail)
  return /^(?:wb|chmod|unset) /.test(suggestion)
    ? failed(detail, suggestion.split('    ')[0])
    : failed(`${detail}; ${suggestion}`)
}
