import fc from 'fast-check'
import type { Comparison, Operand, Policy } from '../../../src/access/policy/parse.ts'

/** Columns that generated rows can contain. */
export const columns = ['status', 'visible_to', 'level', 'Owner', '__proto__', 'in', '_no_match'] as const
const texts = ['', 'a', 'b', 'true', '1', "it's", '\u0001__missing__', '\u{1f600}', '\ufb01', '5']
const text = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...texts) }, fc.string())
const integer = fc.oneof(fc.nat(10), fc.maxSafeNat())
const value = fc.oneof(text, integer, fc.boolean())
const position = fc.constant(1)
const range = { position, end: fc.constant(1) }

const literal = fc.record({ kind: fc.constant('literal' as const), value, position })
const principal = fc.oneof(
  fc.record({ kind: fc.constant('principalId' as const), position }),
  fc.record({
    kind: fc.constant('attribute' as const),
    name: fc.constantFrom('id', 'team', 'admin', 'constructor'),
    position,
  }),
)
const column = fc.record({
  kind: fc.constant('column' as const),
  name: fc.constantFrom(...columns),
  position,
})
const fixed = fc.oneof(literal, principal)
const op = fc.constantFrom<Comparison>('=', '<>', '<', '<=', '>', '>=')

/** Predicates that compile, including ones that compare only constants. */
export const policies = fc.letrec<{ policy: Policy }>(tie => ({
  policy: fc.oneof(
    { maxDepth: 5, depthSize: 'small' },
    compare(column, fixed),
    compare(fixed, column),
    compare(fixed, fixed),
    fc.record({
      kind: fc.constant('in' as const),
      operand: fc.oneof(column, fixed),
      values: fc.array(literal, { minLength: 1, maxLength: 4 }),
      ...range,
    }),
    fc.record({
      kind: fc.constant('any' as const),
      operand: fixed,
      column: fc.constantFrom(...columns),
      ...range,
    }),
    fc.record({
      kind: fc.constant('contains' as const),
      column: fc.constantFrom(...columns),
      values: fc.array(literal, { minLength: 1, maxLength: 3 }),
      ...range,
    }),
    fc.record({
      kind: fc.constantFrom('and' as const, 'or' as const),
      parts: fc.array(tie('policy'), { minLength: 2, maxLength: 3 }),
      ...range,
    }),
    fc.record({ kind: fc.constant('not' as const), inner: tie('policy'), ...range }),
  ),
})).policy

function compare(left: fc.Arbitrary<Operand>, right: fc.Arbitrary<Operand>): fc.Arbitrary<Policy> {
  return fc.record({ kind: fc.constant('compare' as const), op, left, right, ...range })
}

export const principals = fc.record({
  id: fc.constantFrom('a', 'alice', '1'),
  attributes: fc.dictionary(fc.constantFrom('team', 'admin'), text),
})

const stored = fc.oneof(
  value,
  fc.constant(null),
  fc.array(fc.oneof(value, fc.constant(null)), { maxLength: 3 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constant({ a: 1 }),
)

/** Rows parsed from JSON, with any of the columns and values of any type. */
export const rows = fc.array(fc.tuple(fc.constantFrom(...columns), stored), { maxLength: 6 }).map(entries => {
  const row: Record<string, unknown> = {}
  for (const [name, one] of entries)
    Object.defineProperty(row, name, { value: one, enumerable: true, configurable: true })
  return row
})

/** Returns a predicate as policy text. */
export function formatPolicy(policy: Policy): string {
  switch (policy.kind) {
    case 'and':
    case 'or':
      return policy.parts.map(part => `(${formatPolicy(part)})`).join(` ${policy.kind} `)
    case 'not':
      return `NOT (${formatPolicy(policy.inner)})`
    case 'compare':
      return `${formatOperand(policy.left)} ${policy.op} ${formatOperand(policy.right)}`
    case 'in':
      return `${formatOperand(policy.operand)} in (${policy.values.map(formatOperand).join(', ')})`
    case 'any':
      return `${formatOperand(policy.operand)} = ANY(row.${policy.column})`
    case 'contains':
      return `row.${policy.column} @> ARRAY[${policy.values.map(formatOperand).join(', ')}]`
  }
}

function formatOperand(operand: Operand): string {
  switch (operand.kind) {
    case 'literal':
      return typeof operand.value === 'string'
        ? `'${operand.value.replaceAll("'", "''")}'`
        : String(operand.value)
    case 'attribute':
      return `$principal.${operand.name}`
    case 'principalId':
      return 'current_principal_id()'
    case 'column':
      return `row.${operand.name}`
  }
}
