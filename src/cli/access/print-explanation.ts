import type { AccessExplanation, AccessReason } from '../../contract/access-tools.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { wrapWords } from '../terminal/wrap.ts'

/** Prints a decision and the conditions that decide it. In a pipe, prints fields, and then one line per condition. */
export function printExplanation(output: Output, explanation: AccessExplanation, base: KnowledgeBase): void {
  if (output.json) {
    output.value(explanation)
    return
  }
  const { visible, rule, principal, document, reasons, at } = explanation
  if (output.interactive) {
    const [first, second] = sentences(explanation, base)
    const mark = visible ? output.style.good('✓') : output.style.bad('✗')
    output.result(wrapWords(`  ${mark} ${first}`, output.width))
    output.result(wrapWords(`    ${second}`, output.width))
    if (reasons.length > 0) output.result('')
  } else
    output.fields(explanation, {
      visible,
      principal: principal.principalId,
      document: document.documentId,
      rule,
      at,
    })
  output.list(reasons, {
    columns: {
      col: { value: row => row.position, format: 'count' },
      condition: { value: row => row.text, format: 'flexible' },
      result: { value: formatResult, tone: row => (letsIn(row) ? 'good' : 'bad') },
      values: { value: formatValues, format: 'flexible' },
    },
    empty: [],
  })
}

function sentences(
  { visible, rule, principal, document, at }: AccessExplanation,
  { name }: KnowledgeBase,
): [decision: string, explanation: string] {
  const [who, what] = [principal.principalId, document.sourceFilename ?? document.documentId].map(plainLine)
  const verb = at === null ? (visible ? 'sees' : 'does not see') : visible ? 'saw' : 'did not see'
  const time = at === null ? '' : ` at ${at}`
  const policies = {
    off: '',
    builtIn: 'The built-in policy',
    policy: `The policy of knowledge base ${plainLine(name)}`,
    proposed: 'The given policy',
  }
  const reason =
    rule === 'off'
      ? 'Row-level access is off, so everyone sees everything.'
      : visible
        ? `${policies[rule]} lets it in, because of:`
        : `${policies[rule]} keeps it out. At least one of these conditions must change:`
  return [`${who} ${verb} ${what}${time}`, reason]
}

/** Returns true if the condition contributes to a visible document. */
function letsIn({ result, negated }: AccessReason): boolean {
  return result === (negated ? 'false' : 'true')
}

function formatResult({ result, negated }: AccessReason): string {
  return negated ? `${result}, negated` : result
}

function formatValues({ values }: AccessReason): string {
  return values
    .map(({ name, value, missing }) => `${name} is ${missing ? 'missing' : formatValue(value)}`)
    .join('; ')
}

/** Formats a value as in a policy. */
function formatValue(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  return Array.isArray(value) ? `[${value.map(formatValue).join(', ')}]` : JSON.stringify(value)
}
