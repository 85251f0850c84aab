import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { cutLine, type Line, span, wrap } from '../parts/spans.ts'
import type { ChatState } from './types.ts'

/** Maximum number of questions that an empty chat suggests. */
export const SUGGESTIONS_MAX = 3
const NAMED_BASES_MAX = 4

/** Returns a question about each of the first documents. */
export function suggestedQuestions(titles: readonly string[]): string[] {
  const templates = [
    (title: string) => `What does “${title}” say?`,
    (title: string) => `Summarize “${title}”.`,
    (title: string) => `What are the main points of “${title}”?`,
  ]
  return titles.slice(0, SUGGESTIONS_MAX).map((title, index) => templates[index]!(plainLine(title)))
}

/** Returns true if the conversation has no question yet. */
export function isEmptyChat({
  lastExchange,
  turn,
  outage,
}: Pick<ChatState, 'lastExchange' | 'turn' | 'outage'>): boolean {
  return lastExchange.question === undefined && !turn && !outage
}

/** Returns the lines of an empty chat: the agent, its knowledge bases, and suggested questions. */
export function greetingLines({ subject, suggestions, size }: ChatState): Line[] {
  const { columns } = size
  const indent = [span('  ')]
  const intro = [
    span(plainLine(subject.agent), 'strong'),
    span(` answers from ${describeBases(subject.knowledgeBases)}`),
  ]
  const lines = wrap(intro, columns, { first: indent, rest: indent })
  if (suggestions.length === 0) return [[], ...lines]
  const questions = suggestions.map((question, index) =>
    cutLine([span(`  ${index + 1}  `, 'accent'), span(question)], columns - 1),
  )
  const keys = [
    'alt+1 asks this question',
    'alt+1 and alt+2 ask these questions',
    'alt+1 to alt+3 ask these questions',
  ][suggestions.length - 1]
  return [[], ...lines, [], ...questions, [], [span(`  ${keys}`, 'dim')]]
}

/** Describes knowledge bases by name. An empty list means all knowledge bases. */
export function describeBases(names: readonly string[]): string {
  if (names.length === 0) return 'all knowledge bases'
  const shownNames = names.slice(0, NAMED_BASES_MAX).map(plainLine)
  const hiddenCount = names.length - shownNames.length
  const all = hiddenCount > 0 ? [...shownNames, `${hiddenCount} more`] : shownNames
  return all.length === 1 ? all[0]! : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`
}
