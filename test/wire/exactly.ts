/** A matcher for a value that the server generates. */
export class Matcher {
  constructor(
    readonly description: string,
    readonly accepts: (actual: unknown) => boolean,
    readonly mayBeAbsent = false,
  ) {}
}

export const uuid = matching(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
export const isoMs = matching(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
export const anyText = new Matcher(
  'text of one character or more',
  value => typeof value === 'string' && value !== '',
)
export const anyNumber = new Matcher('a finite number', value => Number.isFinite(value))
export const count = new Matcher(
  'a whole number from 0',
  value => Number.isInteger(value) && Number(value) >= 0,
)

/** Text that matches a pattern. */
export function matching(pattern: RegExp): Matcher {
  return new Matcher(`text like ${pattern}`, value => typeof value === 'string' && pattern.test(value))
}

/** A number rounded to single precision. */
export function near(expected: number, tolerance = 1e-6): Matcher {
  return new Matcher(`${expected} ± ${tolerance}`, value => {
    return typeof value === 'number' && Math.abs(value - expected) <= tolerance
  })
}

/** One of several expectations. */
export function oneOf(...expected: unknown[]): Matcher {
  return new Matcher(`one of ${JSON.stringify(expected.map(describe))}`, value => {
    return expected.some(one => differences(value, one).length === 0)
  })
}

/** An array of any length whose elements all match. */
export function arrayOf(expected: unknown): Matcher {
  return new Matcher(`an array of ${describe(expected)}`, value => {
    return Array.isArray(value) && value.every(entry => differences(entry, expected).length === 0)
  })
}

/** A field that can be absent and matches if it is present. */
export function optional(expected: unknown): Matcher {
  return new Matcher(
    `${describe(expected)}, or absent`,
    value => value === undefined || differences(value, expected).length === 0,
    true,
  )
}

/**
 * Every place where a JSON value is not exactly as expected: a missing field, an extra one, another value.
 *
 * @returns one line per difference, beginning with its path
 */
export function differences(actual: unknown, expected: unknown, path = '$'): string[] {
  if (expected instanceof Matcher)
    return expected.accepts(actual) ? [] : [`${path}: expected ${expected.description}, got ${show(actual)}`]
  if (Array.isArray(expected)) return arrayDifferences(actual, expected, path)
  if (isObject(expected)) return objectDifferences(actual, expected, path)
  return Object.is(actual, expected) ? [] : [`${path}: expected ${show(expected)}, got ${show(actual)}`]
}

/** Fails with every path that differs. */
export function exactly(actual: unknown, expected: unknown, about = ''): void {
  const found = differences(actual, expected)
  if (found.length > 0) throw new Error([about, ...found].filter(Boolean).join('\n  '))
}

function arrayDifferences(actual: unknown, expected: readonly unknown[], path: string): string[] {
  if (!Array.isArray(actual)) return [`${path}: expected an array, got ${show(actual)}`]
  const length =
    actual.length === expected.length
      ? []
      : [`${path}: expected ${expected.length} elements, got ${actual.length}: ${show(actual)}`]
  return [
    ...length,
    ...expected.slice(0, actual.length).flatMap((one, index) => {
      return differences(actual[index], one, `${path}[${index}]`)
    }),
  ]
}

function objectDifferences(actual: unknown, expected: Record<string, unknown>, path: string): string[] {
  if (!isObject(actual)) return [`${path}: expected an object, got ${show(actual)}`]
  const extra = Object.keys(actual)
    .filter(key => !Object.hasOwn(expected, key))
    .map(key => `${path}.${key}: is not in the contract (${show(actual[key])})`)
  const wrong = Object.entries(expected).flatMap(([key, one]) => {
    if (Object.hasOwn(actual, key)) return differences(actual[key], one, `${path}.${key}`)
    return one instanceof Matcher && one.mayBeAbsent ? [] : [`${path}.${key}: is missing`]
  })
  return [...extra, ...wrong]
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function describe(expected: unknown): string {
  return expected instanceof Matcher ? expected.description : show(expected)
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value)
  return text.length > 300 ? `${text.slice(0, 300)}…` : text
}
