import { parseJson } from '../../base/parse-json.ts'
import type { Citation } from '../../contract/chat.ts'
import type { Message } from '../../contract/conversations.ts'
import { documentName } from '../fields/resources.ts'
import { isId } from '../id.ts'
import type { Passage } from '../passages/find-passages.ts'

/** Returns the citations of an answer. Ignores invalid metadata. */
export function citationsOf({ metadata }: Pick<Message, 'metadata'>): readonly Citation[] {
  const parsed = parseJson(metadata.citations ?? '[]')
  return Array.isArray(parsed) ? parsed.map(addMissingAttachment).filter(isCitation) : []
}

/** Adds `attachmentId`, which citations from earlier versions do not have. */
function addMissingAttachment(citation: object): object {
  return { attachmentId: null, ...citation }
}

const isString = (value: unknown) => typeof value === 'string'
const isStringOrNull = (value: unknown) => value === null || isString(value)
const isIdOrNull = (value: unknown) => value === null || (isString(value) && isId(String(value)))
const isIntegerOrNull = (value: unknown) => value === null || Number.isSafeInteger(value)

/** Validators by field. Route schemas do not validate the content of metadata. */
const validatorByField: Readonly<Record<keyof Citation, (value: unknown) => boolean>> = {
  number: value => Number.isSafeInteger(value) && Number(value) > 0,
  knowledgeBaseId: isIdOrNull,
  attachmentId: isIdOrNull,
  documentId: isStringOrNull,
  chunkId: isString,
  chunkIndex: isIntegerOrNull,
  title: isStringOrNull,
  sourceFilename: isStringOrNull,
  page: isIntegerOrNull,
}

function isCitation(value: unknown): value is Citation {
  const fields = { ...(value as Record<string, unknown> | null) }
  return Object.entries(validatorByField).every(([name, isValid]) => isValid(fields[name]))
}

/** Adds the citations of another answer. They replace earlier citations with the same number. */
export function accumulateCitations(
  earlier: readonly Citation[],
  newCitations: readonly Citation[],
): readonly Citation[] {
  const others = earlier.filter(citation => !newCitations.some(({ number }) => number === citation.number))
  return [...others, ...newCitations].sort((a, b) => a.number - b.number)
}

/** Converts a passage to a citation. */
export function citationFromPassage(passage: Passage): Citation {
  const { number, knowledgeBaseId, documentId, id, chunkIndex, document, place } = passage
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
    page: place?.kind === 'page' ? Number(place.value) : null,
  }
}
