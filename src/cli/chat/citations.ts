import type { Citation } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { documentName } from '../fields/resources.ts'
import { isId } from '../id.ts'
import type { Passage } from '../passages/find-passages.ts'

/** Returns the citations of an answer; none if its metadata is not a list of citations. */
export function citationsOf({ metadata }: Pick<Message, 'metadata'>): readonly Citation[] {
  try {
    const listed: unknown = JSON.parse(metadata.citations ?? '[]')
    return Array.isArray(listed) ? listed.map(addMissingAttachment).filter(isCitation) : []
  } catch {
    return []
  }
}

/** Field that citations of earlier versions lack. */
function addMissingAttachment(citation: object): object {
  return { attachmentId: null, ...citation }
}

const isText = (value: unknown) => typeof value === 'string'
const isTextOrNull = (value: unknown) => value === null || isText(value)
const isIdOrNull = (value: unknown) => value === null || (isText(value) && isId(String(value)))
const isCountOrNull = (value: unknown) => value === null || Number.isSafeInteger(value)

/** Metadata is not validated by the schema of a route. */
const validatorOfField: Readonly<Record<keyof Citation, (value: unknown) => boolean>> = {
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
  return Object.entries(validatorOfField).every(([name, isSound]) => isSound(given[name]))
}

/** Adds the citations of another answer. In a conversation, a number always cites the same passage. */
export function accumulateCitations(
  before: readonly Citation[],
  now: readonly Citation[],
): readonly Citation[] {
  const others = before.filter(one => !now.some(({ number }) => number === one.number))
  return [...others, ...now].sort((a, b) => a.number - b.number)
}

/** Returns a passage of a search as a citation. */
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
