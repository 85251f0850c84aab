import { words } from '../../base/words.ts'
import type { SentenceRange } from '../../contract/chat.ts'
import { findBreaks } from '../../knowledge/chunk/breaks.ts'

/** A sentence of an answer that states something about its subject. */
export interface Claim extends SentenceRange {
  /** The sentence without Markdown marks and citations. */
  readonly text: string
}

/** Minimum number of words of a claim. Shorter sentences, such as "Yes, it is.", depend on the sentences around them. */
const CLAIM_WORDS_MIN = 4

const leadingHeadings = /^\s*(?:#{1,6}(?:[ \t][^\n]*)?\n\s*)+/
const leadingMarks = /^(?:[\s>]|[-*+•](?=\s)|\d{1,9}[.)](?=\s)|\[[ xX]\](?=\s))+/
/** A label in bold at the beginning of a list item, such as `**Deadline:**`. */
const leadingLabel = /^(?:\*\*|__)[^*_\n]{1,80}(?::(?:\*\*|__)|(?:\*\*|__)(?::| [-–—]))\s+/
const leadingCitations = /^(?:\[\d{1,4}\])+\s*/
const heading = /^#{1,6}(?:\s|$)/
const fence = /^[ \t>]*(?:```|~~~)/m
const tableRow = /^[ \t>]*\|/m

/** Beginnings of sentences about the conversation, such as offers and apologies. */
const conversational =
  /^(?:i|i['’](?:m|ll|d|ve)|let me|let['’]s|please let|feel free|if you (?:have|need|want|would)|you can ask|hope|here(?:['’]s| is| are)|sure|certainly|of course|sorry|thanks?|you['’]re welcome)\b/i
const sourceNoun =
  /\b(?:passages?|documents?|documentation|sources?|context|excerpts?|knowledge bases?|search|results?|files?|attachments?|texts?|information|details)\b/i
const absence =
  /\b(?:do|does|did|is|are|was|were|has|have|can|could)(?: not|n['’]t)\b|\b(?:cannot|no|nothing|none|neither|without)\b/i

/**
 * Returns the sentences of an answer in Markdown that state something about its subject. Omits headings, code, tables,
 * questions, introductions of lists, very short sentences, and sentences about the conversation or about missing
 * information.
 */
export function claimsIn(answer: string): Claim[] {
  return sentencesIn(answer).flatMap(({ start, end }) => {
    const text = withoutMarks(answer.slice(start, end))
    return isClaim(text) ? [{ start, end, text }] : []
  })
}

function sentencesIn(text: string): SentenceRange[] {
  const sentences: { start: number; end: number }[] = []
  for (const segment of segmentsOf(text)) {
    let { start } = segment
    let rest = text.slice(start, segment.end)
    const skip = (pattern: RegExp) => {
      const length = pattern.exec(rest)?.[0].length ?? 0
      rest = rest.slice(length)
      start += length
      return length
    }
    skip(leadingHeadings)
    skip(leadingMarks)
    const previous = sentences.at(-1)
    // A citation after a period belongs to the sentence before it.
    if (skip(leadingCitations) > 0 && previous) previous.end = text.slice(0, start).trimEnd().length
    skip(leadingLabel)
    rest = rest.slice(0, fence.exec(rest)?.index).trimEnd()
    if (rest !== '' && !heading.test(rest) && !tableRow.test(rest))
      sentences.push({ start, end: start + rest.length })
  }
  return sentences
}

/** Returns the parts of a Markdown text that may be sentences, with the marks and headings before them. */
export function segmentsOf(text: string): SentenceRange[] {
  const { offsets, count } = findBreaks(text)
  const edges = [0, ...offsets.subarray(0, count), text.length]
  return edges.slice(1).map((end, at) => ({ start: edges[at]!, end }))
}

function isClaim(text: string): boolean {
  if (/[?:]["'”’)]*$/.test(text) || conversational.test(text)) return false
  if (sourceNoun.test(text) && absence.test(text)) return false
  return words(text).length >= CLAIM_WORDS_MIN
}

/** Removes citations, addresses of links, and marks of emphasis and code from a Markdown text. */
export function withoutMarks(markdown: string): string {
  return markdown
    .replace(/!?\[([^\]\n]{0,500})\]\([^)\n]{0,2000}\)/g, '$1')
    .replace(/ ?\[\d{1,4}\]/g, '')
    .replace(/[*`]+|(?<!\w)_{1,3}|_{1,3}(?!\w)/g, '')
    .replace(/\s+/g, ' ')
    .trim()
}
