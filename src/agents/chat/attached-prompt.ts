import type { AttachmentIndex } from '../tools/attachment-reader.ts'
import { bytesForTokens } from '../tools/passage-budget.ts'
import { previewText } from '../tools/tool-result.ts'
import { bytesOfEntry, type CitationContext, formatEntries, type RetrievedPassage } from './grounding.ts'

/** Maximum length of the name of an attachment in the prompt. */
const nameCharsMax = 100
/** If fewer bytes than this are available, the prompt contains no text of attachments. */
const passageBytesMin = 480
/** Maximum number of passages to select from. Fewer than that fit into the prompt. */
const candidatesMax = 200

/** The part of the prompt about the conversation's attachments. */
export interface AttachedPrompt {
  readonly text: string
  readonly passages: readonly RetrievedPassage['passage'][]
  readonly bytes: number
}

export const emptyAttachedPrompt: AttachedPrompt = { text: '', passages: [], bytes: 0 }

const intro = 'These files are attached to the conversation. A question about "this file" is about them.'
const wholeTextNote = 'Their whole text is below.'
const passagesNote = 'Their passages that match the question best are below.'
const readToolNote = 'Read more of a file with read_attachment.'

/**
 * Builds the part of the prompt about the attachments of a conversation. It contains their whole text if it fits, and
 * otherwise the best passages for a query: at least one from each attachment, if there is space.
 *
 * @param options.tokens   maximum number of tokens of the text
 * @param options.canRead  true if the model has the tool `read_attachment`
 */
export async function buildAttachedPrompt(
  attached: readonly AttachmentIndex[],
  { query, tokens, canRead }: { query: string; tokens: number; canRead: boolean },
  { citations, dataTags }: CitationContext,
): Promise<AttachedPrompt> {
  if (attached.length === 0) return emptyAttachedPrompt
  const names = attached.map(attachmentName).join('\n')
  const bytesMax = bytesForTokens(tokens) - Buffer.byteLength(names)
  const isWhole = fitsWhole(attached, bytesMax)
  const candidates = isWhole ? attached.flatMap(({ chunks }) => chunks) : await bestPassages(attached, query)
  const hasSpace = bytesMax >= passageBytesMin
  const { entries, passages } = formatEntries(hasSpace ? candidates : [], query, bytesMax, citations)
  const notes = isWhole
    ? [intro, wholeTextNote]
    : [intro, passages.length > 0 && passagesNote, canRead && readToolNote]
  const data = dataTags.enclose('attachments', [names, entries].filter(Boolean).join('\n\n'))
  const text = `${notes.filter(Boolean).join(' ')}\n${data}`
  return { text, passages, bytes: Buffer.byteLength(text) }
}

function attachmentName({ attachment: { filename, attachmentId }, chunks }: AttachmentIndex): string {
  const name = JSON.stringify(previewText(filename, nameCharsMax))
  return `- ${name} attachmentId ${attachmentId}, ${chunks.length} chunks`
}

/** Returns true if the whole text of the attachments fits. */
function fitsWhole(attached: readonly AttachmentIndex[], bytesMax: number): boolean {
  const chars = attached.reduce((sum, { attachment }) => sum + attachment.textChars, 0)
  if (chars > bytesMax) return false
  const chunks = attached.flatMap(each => each.chunks)
  return chunks.reduce((sum, chunk) => sum + bytesOfEntry(chunk), 0) <= bytesMax
}

interface ChunkCandidate {
  readonly chunk: RetrievedPassage
  readonly chunkIndex: number
  readonly score: number
}

/** Returns passages in order of preference: the best one of each attachment, then all others. */
async function bestPassages(
  attached: readonly AttachmentIndex[],
  query: string,
): Promise<RetrievedPassage[]> {
  const [bestOfEach, others]: [ChunkCandidate[], ChunkCandidate[]] = [[], []]
  for (const index of attached) {
    // Attachments are searched one by one, so that other work can run in between.
    const scores = await index.scores(query)
    const scored = index.chunks.map((chunk, at) => ({ chunk, chunkIndex: at, score: scores.get(at) ?? 0 }))
    const [first, ...rest] = scored.sort(compareRank).slice(0, candidatesMax)
    bestOfEach.push(first!)
    others.push(...rest)
  }
  const matches = others.filter(({ score }) => score > 0)
  const hasMatch = bestOfEach.some(({ score }) => score > 0)
  const rest = hasMatch ? matches : others
  return [...bestOfEach.sort(compareRank), ...rest.sort(compareRank)]
    .slice(0, candidatesMax)
    .map(({ chunk }) => chunk)
}

/** Compares passages for sorting: by score, highest first, and then by position in the file. */
function compareRank(left: ChunkCandidate, right: ChunkCandidate): number {
  return right.score - left.score || left.chunkIndex - right.chunkIndex
}
