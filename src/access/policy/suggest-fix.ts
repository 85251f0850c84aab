import { nearestMatch } from '../../base/nearest-match.ts'

/** Suggestions by the text at which an error occurs, and optionally the text before it. The first match applies. */
const suggestions: readonly (readonly [text: RegExp, hint: string, before?: RegExp])[] = [
  [/^=/, 'Write = once.', /=\s*$/],
  [
    /^(?:I?LIKE|SIMILAR|MATCHES|CONTAINS)\b/i,
    'Patterns are not supported. Compare whole values with = or IN.',
  ],
  [
    /^(?:IS|ISNULL|NOTNULL)\b/i,
    'There is no IS NULL. A comparison is false if the document does not have the column.',
  ],
  [/^BETWEEN\b/i, 'Write column >= 1 AND column <= 9.'],
  [/^NOT\s+IN\b/i, 'Write NOT before the condition: NOT column IN (value, value).'],
  [/^(?:HAS|INCLUDES)\b/i, 'Write value = ANY(column) to search in a list.'],
  [/^[A-Za-z_]/, "Write value = ANY(column) to search in a list: 'x' = ANY(tags).", /\bIN\s*$/i],
  [/^['\d]/, "Put the values in parentheses: column IN ('a', 'b').", /\bIN\s*$/i],
  [/^ANY\b/i, 'Write NOT (value = ANY(column)).', /(?:<>|!=)\s*$/],
  [/^ANY\b/i, "Write the value first: 'x' = ANY(tags)."],
  [
    /^\(/,
    'Write current_principal_id() for the ID of the principal. There are no other functions.',
    /[A-Za-z_]\s*$/,
  ],
  [
    /^(?:AND|OR|NOT|IN|ARRAY)\b/i,
    'If a column has the name of a keyword, write row. before it, as in row.in.',
  ],
  [/^["`\u2018\u2019\u201c\u201d]/, "Put strings in single quotes: 'open'. Column names have no quotes."],
  [/^&/, 'Write AND.'],
  [/^\|/, 'Write OR.'],
  [/^!/, 'Write NOT.'],
  [/^~/, 'Patterns are not supported. Compare whole values with = or IN.'],
  [/^\$/, 'Write $principal.NAME for an attribute of the principal, such as $principal.team.'],
  [/^--|^;|^\/\*|^#/, 'A policy is one condition, without comments.'],
  [/^[-+]?\d|^-|^\./, 'Numbers are whole and not negative. Store other numbers as strings.'],
  [/^\{/, 'Write ARRAY[value, value].'],
]
const wordAtStart = /^[A-Za-z_]\w*/
const endOfCondition = 'AND, OR or the end of the policy'

/**
 * Returns a suggestion to correct an error in a policy; undefined without a suggestion.
 *
 * @param position  position of the error, counted from 1
 * @param expected  what the parser expected; null if the text cannot be a part of any policy
 */
export function suggestFix(dsl: string, position: number, expected: string | null): string | undefined {
  const [before, text] = [dsl.slice(0, position - 1), dsl.slice(position - 1)]
  const keyword = misspelledKeyword(text, expected)
  if (keyword) return `Did you mean ${keyword}?`
  const [, hint] =
    suggestions.find(([pattern, , earlier]) => pattern.test(text) && (earlier?.test(before) ?? true)) ?? []
  return (
    hint ?? (expected === endOfCondition && text !== '' ? 'Write AND or OR between conditions.' : undefined)
  )
}

function misspelledKeyword(text: string, expected: string | null): string | undefined {
  const [word] = wordAtStart.exec(text) ?? []
  if (word === undefined || expected === null) return undefined
  if (expected === endOfCondition) return nearestMatch(word, ['AND', 'OR'])
  return expected === 'ARRAY' ? nearestMatch(word, ['ARRAY']) : undefined
}
