/** Returns some fields of an object, in the given order. */
export function pickFields<T extends object, K extends keyof T>(whole: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(fields.map(field => [field, whole[field]])) as Pick<T, K>
}
