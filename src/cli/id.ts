const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Returns true for a UUID. Names never have this format. */
export function isId(text: string): boolean {
  return uuidPattern.test(text)
}
