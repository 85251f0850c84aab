import type { z } from 'zod'
import { isErrorCode, WbError } from '../contract/errors.ts'

/**
 * The value as the schema gives it.
 *
 * @throws validation_error  the first issue, as `<path>: <reason>`; an issue that names a registered code throws that
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value, { error: missing })
  if (result.success) return result.data
  throw refusal(result.error.issues[0]!)
}

/** A field that was left out is said to be missing; all else in the library's words. */
function missing(issue: z.core.$ZodRawIssue): string | undefined {
  return issue.code === 'invalid_type' && issue.input === undefined ? 'is required' : undefined
}

type Issue = z.core.$ZodIssue

function refusal(issue: Issue): WbError {
  const path = issue.path.map(String).join('.')
  return new WbError(codeOf(issue), path === '' ? issue.message : `${path}: ${issue.message}`)
}

function codeOf(issue: Issue) {
  const code = issue.code === 'custom' ? issue.params?.code : undefined
  return typeof code === 'string' && isErrorCode(code) ? code : 'validation_error'
}
