/** Returns the system error code of an error, or else its message. */
export function errorCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error ? String(error.code) : error.message
}
