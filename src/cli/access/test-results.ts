import type { AccessReason } from '../../contract/access-tools.ts'
import type { AccessCaseReport } from '../local.ts'
import { formatCount, formatCounted, type Output } from '../terminal/output.ts'

/** A test case of access with its result. */
export interface TestedCase {
  readonly name: string
  readonly principal: string
  readonly expected: 'allow' | 'deny'
  readonly actual: 'allow' | 'deny'
  readonly passed: boolean
  /** Texts of the conditions that decided. */
  readonly because: readonly string[]
}

/** Returns a case with its result. */
export function toTestedCase(
  { name, principal, expect: expected }: AccessCaseReport['cases'][number],
  { isVisible, reasons }: { isVisible: boolean; reasons: readonly Pick<AccessReason, 'text'>[] },
): TestedCase {
  const actual = isVisible ? 'allow' : 'deny'
  const because = [...new Set(reasons.map(({ text }) => text))]
  return { name, principal, expected, actual, passed: actual === expected, because }
}

/** Prints a line for each case, and a summary on stderr. */
export function printTestedCases(output: Output, cases: readonly TestedCase[]): void {
  output.list(cases, {
    columns: {
      ' ': {
        value: row => (output.interactive ? (row.passed ? '✓' : '✗') : row.passed ? 'ok' : 'failed'),
        tone: row => (row.passed ? 'good' : 'bad'),
      },
      case: { value: row => row.name, format: 'flexible' },
      expected: { value: row => row.expected },
      actual: { value: row => row.actual, tone: row => (row.passed ? undefined : 'bad') },
      because: { value: row => row.because.join(', '), format: 'flexible' },
    },
    empty: [],
  })
  const failures = cases.filter(({ passed }) => !passed).length
  if (failures === 0) output.note(`  ✓ all ${formatCounted(cases.length, 'case')} passed`)
  else output.warn(`  ✗ ${formatCount(failures)} of ${formatCounted(cases.length, 'case')} failed`)
}
