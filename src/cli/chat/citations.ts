import type { Citation } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { isId } from '../id.ts'
import type { Passage } from '../passages/find-passages.ts'
import { documentName } from '../shown/resources.ts'

/** What an answer cites; what is no list of citations is none. */
export function citationsOf({ metadata }: Pick<Message, 'metadata'>): readonly Citation[] {
  try {
    const listed: unknown = JSON.parse(metadata.citations ?? '[]')
    return Array.isArray(listed) ? listed.map(withAttachment).filter(isCitation) : []
  } catch {
    return []
  }
}

/** Citations of earlier versions lack the field. */
function withAttachment(citation: object): object {
  return { attachmentId: null, ...citation }
}

const isText = (value: unknown) => typeof value === 'string'
const isTextOrNull = (value: unknown) => value === null || isText(value)
const isIdOrNull = (value: unknown) => value === null || (isText(value) && isId(String(value)))
const isCountOrNull = (value: unknown) => value === null || Number.isSafeInteger(value)

/** Metadata is text that no schema of a route has seen. */
const fields: Readonly<Record<keyof Citation, (value: unknown) => boolean>> = {
  number: value => Number.isSafeInteger(value) && Number(value) > 0,
  knowledgeBaseId: isIdOrNull,
  attachmentId: isIdOrNull,
  documentId: isTextOrNull,
  chunkId: isText,
  chunkIndex: isCountOrNull,
  title: isTextOrNull,
  sourceFilename: isTextOrNull,
  page: isCountOrNull,
}

function isCitation(one: unknown): one is Citation {
  const given = { ...(one as Record<string, unknown> | null) }
  return Object.entries(fields).every(([name, isSound]) => isSound(given[name]))
}

/** What can be opened after a further answer: a number stays a passage's through a conversation. */
export function citedBy(before: readonly Citation[], now: readonly Citation[]): readonly Citation[] {
  const others = before.filter(one => !now.some(({ number }) => number === one.number))
  return [...others, ...now].sort((a, b) => a.number - b.number)
}

/** A passage that a search found, as an answer would cite it. */
export function citationOf(passage: Passage): Citation {
  const { number, knowledgeBaseId, documentId, id, chunkIndex, document } = passage
  const title = document ? documentName(document) : null
  const sourceFilename = document?.sourceFilename ?? null
  return {
    number,
    knowledgeBaseId,
    attachmentId: null,
    documentId,
    chunkId: id,
    chunkIndex,
    title,
    sourceFilename,
    page: null,
  }
}
