import type { AccessExplanation, AccessReason } from '../../contract/access-tools.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import { plainLine } from '../terminal/terminal-text.ts'
import { wrapLine, wrapWords } from '../terminal/wrap.ts'

/** Prints a decision and the conditions that decide it. In a pipe, prints fields, and then one line per condition. */
export function printExplanation(output: Output, explanation: AccessExplanation, base: KnowledgeBase): void {
  const { visible, rule, principal, document, reasons, reasonsTotal, at } = explanation
  if (output.json) output.value(explanation)
  else if (output.interactive) printSentences(output, explanation, base)
  else {
    const fields = { visible, principal: principal.principalId, document: document.documentId, rule, at }
    output.fields(explanation, fields)
    for (const reason of reasons)
      output.result(
        [`col ${reason.position}`, reason.text, formatResult(reason), formatValues(reason)]
          .map(plainLine)
          .join('\t'),
      )
  }
  const omitted = reasonsTotal - reasons.length
  if (omitted > 0 && !output.json) output.note(`  … and ${formatCounted(omitted, 'more condition')}`)
}

function printSentences(output: Output, explanation: AccessExplanation, base: KnowledgeBase): void {
  const { style, width } = output
  const { visible, reasons } = explanation
  const [first, second] = sentences(explanation, base)
  const positions = reasons.map(({ position }) => `col ${position}`)
  const positionWidth = Math.max(0, ...positions.map(({ length }) => length))
  const indent = '    '.length + positionWidth + '  '.length
  const reasonLines = reasons.flatMap((reason, index) => {
    const result = style[letsIn(reason) ? 'good' : 'bad'](formatResult(reason))
    const values = formatValues(reason)
    return [
      `    ${style.dim(positions[index]!.padEnd(positionWidth))}  ${plainLine(reason.text)}`,
      `${' '.repeat(indent)}${result}${values === '' ? '' : `: ${plainLine(values)}`}`,
    ]
  })
  output.result(wrapWords(`  ${visible ? style.good('✓') : style.bad('✗')} ${first}`, width))
  output.result(wrapWords(`    ${second}`, width))
  if (reasonLines.length > 0) output.result('')
  for (const line of reasonLines) for (const part of wrapLine(line, width, indent)) output.result(part)
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
    .map(({ name, value, cut, missing }) =>
      missing ? `${name} is missing` : `${name} is ${formatValue(value)}${cut ? ' (cut)' : ''}`,
    )
    .join('; ')
}

/** Formats a value as in a policy. */
function formatValue(value: unknown): string {
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  return Array.isArray(value) ? `[${value.map(formatValue).join(', ')}]` : JSON.stringify(value)
}
