import { truncateText } from '../tools/tool-result.ts'

/** Maximum length of a title from a question, in UTF-16 units. */
const titleCharsMax = 80

/**
 * Returns the title of a conversation: the first line of its first question, cut after a word if it is too long.
 *
 * @returns null for a question without words
 */
export function titleFrom(question: string): string | null {
  const line = question
    .split('\n')
    .map(text => text.replace(/\s+/g, ' ').trim())
    .find(text => text !== '')
  if (line === undefined) return null
  if (line.length <= titleCharsMax) return line
  const start = truncateText(line, titleCharsMax - 1)
  const end = line[start.length] === ' ' ? start.length : start.lastIndexOf(' ')
  // A text without spaces, such as Chinese or a URL, is cut at any character.
  return `${end > titleCharsMax / 2 ? start.slice(0, end) : start}…`
}
