import { cut } from '../tools/result.ts'

/** Length of a title that is made from a question, in UTF-16 units. */
const titleCharsMax = 80

/**
 * Makes the title of a conversation from its first question: the first line, ended at a word where it is too long.
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
  const start = cut(line, titleCharsMax - 1)
  const end = line[start.length] === ' ' ? start.length : start.lastIndexOf(' ')
  // A text without spaces, such as Chinese or an address, has no word to end at.
  return `${end > titleCharsMax / 2 ? start.slice(0, end) : start}…`
}
