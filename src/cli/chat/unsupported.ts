import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'
import type { Message } from '../../contract/conversations.ts'
import { formatCounted } from '../terminal/output.ts'
import { plain } from '../terminal/terminal-text.ts'

/**
 * Returns the sentences of an answer that no passage supports, in Markdown. Ignores invalid metadata, because the schema of
 * a message does not validate it.
 */
export function unsupportedSentences({ content, metadata }: Pick<Message, 'content' | 'metadata'>): string[] {
  const ranges = parseJson(metadata.unsupported ?? '[]')
  if (!Array.isArray(ranges) || content === null) return []
  return ranges
    .filter(isObject)
    .map(({ start, end }) =>
      isOffset(start) && isOffset(end) ? plain(content.slice(start, end)).trim() : '',
    )
    .filter(sentence => sentence !== '')
}

function isOffset(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** Returns a list of unsupported sentences: its heading, and the sentences without citations, each on one line. */
export function unsupportedList(sentences: readonly string[]): { heading: string; items: readonly string[] } {
  const verb = sentences.length === 1 ? 'is' : 'are'
  return {
    heading: `${formatCounted(sentences.length, 'sentence')} ${verb} not supported by the sources:`,
    items: sentences.map(sentence =>
      sentence
        .replace(/ ?\[\d{1,4}\](?!\()/g, '')
        .replace(/\s+/g, ' ')
        .trim(),
    ),
  }
}
