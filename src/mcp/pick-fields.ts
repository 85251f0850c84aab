/** Returns an object with only the listed fields, in the order of the list. */
export function pickFields<T extends object, K extends keyof T>(object: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(fields.map(field => [field, object[field]])) as Pick<T, K>
}
