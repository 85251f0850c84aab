import { joinSpans, type Line, type StyledSpan } from '../parts/spans.ts'
import { plainMarkdown } from './render.ts'

/**
 * Dims sentences in rendered lines. The lines can be wrapped, so white space is ignored. Sentences that the lines do not
 * contain are ignored too.
 *
 * @param sentences  sentences in Markdown
 */
export function dimSentences(lines: readonly Line[], sentences: readonly string[]): Line[] {
  const text = withoutSpaces(
    lines
      .flat()
      .map(span => span.text)
      .join(''),
  )
  const ranges = sentences.flatMap(sentence => {
    const sought = withoutSpaces(plainMarkdown(sentence))
    const start = sought === '' ? -1 : text.indexOf(sought)
    return start < 0 ? [] : [{ start, end: start + sought.length }]
  })
  let offset = 0
  const dimCharacters = ({ text: spanText, tones }: StyledSpan): StyledSpan[] =>
    [...spanText.matchAll(/\S|\s+/g)].map(([piece]) => {
      const isSpace = /\s/.test(piece)
      const isDim = ranges.some(({ start, end }) => offset >= start + (isSpace ? 1 : 0) && offset < end)
      if (!isSpace) offset += piece.length
      return { text: piece, tones: isDim ? dimTones(tones) : tones }
    })
  return ranges.length === 0 ? [...lines] : lines.map(line => joinSpans(line.flatMap(dimCharacters)))
}

/** Bold and dim text look different in each terminal, so dim text is not bold. */
function dimTones(tones: StyledSpan['tones']): StyledSpan['tones'] {
  return [...tones.filter(tone => tone !== 'strong' && tone !== 'dim'), 'dim']
}

function withoutSpaces(text: string): string {
  return text.replace(/\s+/g, '')
}
