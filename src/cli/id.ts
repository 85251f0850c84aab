const shape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** True of what can only be an id: a name is never shaped so. */
export function isId(text: string): boolean {
  return shape.test(text)
}
