import type { z } from 'zod'
import { isErrorCode, WbError } from '../contract/errors.ts'

/**
 * Validates a value, and returns the output of the schema.
 *
 * @throws validation_error  with the first issue as `<path>: <reason>`. If the issue contains a registered error
 *   code, the error has that code.
 * @param name  name of the value, for the message if it is not an object
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown, name = 'input'): z.output<S> {
  const result = schema.safeParse(value, { error: missingFieldMessage })
  if (result.success) return result.data
  throw invalidInput(result.error.issues[0]!, name)
}

/** Returns `is required` for a missing field. For other issues, zod uses its default message. */
function missingFieldMessage(issue: z.core.$ZodRawIssue): string | undefined {
  return issue.code === 'invalid_type' && issue.input === undefined ? 'is required' : undefined
}

type ZodIssue = z.core.$ZodIssue

function invalidInput(issue: ZodIssue, name: string): WbError {
  const path = issue.path.map(String).join('.')
  if (path === '' && issue.code === 'invalid_type' && issue.expected === 'object')
    return new WbError('validation_error', `${name}: must be an object`)
  return new WbError(issueErrorCode(issue), path === '' ? issue.message : `${path}: ${issue.message}`)
}

function issueErrorCode(issue: ZodIssue) {
  const code = issue.code === 'custom' ? issue.params?.code : undefined
  return typeof code === 'string' && isErrorCode(code) ? code : 'validation_error'
}
