import { cutUnits } from '../../base/cut-units.ts'

/** Maximum length in UTF-16 units of a title that is derived from a question. */
const titleCharsMax = 80

/**
 * Returns the title of a conversation: the first line of its first question, truncated after a word if it is too long.
 *
 * @returns null if the question contains only white space
 */
export function titleFromQuestion(question: string): string | null {
  const line = question
    .split('\n')
    .map(text => text.replace(/\s+/g, ' ').trim())
    .find(text => text !== '')
  if (line === undefined) return null
  if (line.length <= titleCharsMax) return line
  const start = cutUnits(line, titleCharsMax - 1)
  const end = line[start.length] === ' ' ? start.length : start.lastIndexOf(' ')
  // A text without spaces, such as Chinese text or a URL, can be truncated at any character.
  return `${end > titleCharsMax / 2 ? start.slice(0, end) : start}…`
}
