import type { Caller } from '../access/caller.ts'
import { queueMember } from '../access/caller-queue.ts'
import type { Clock } from '../base/clock.ts'
import type { QueueTurn } from '../base/fair-limiter.ts'
import type { AttachmentForm, AttachmentText } from '../contract/attachments.ts'
import type { ChunkPreview, ChunkPreviewForm } from '../contract/chunk-preview.ts'
import type { IngestForm } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ReceivedForm, UploadedFile } from '../contract/route.ts'
import type { FileReader } from '../formats/file-reader.ts'
import { hasSections } from './chunk/sections.ts'
import type { IndexThreads } from './index-threads.ts'
import { layoutOf, type StructuredIngest } from './ingest/structured-ingest.ts'
import type { Docling } from './parse/docling.ts'
import type { ExtractedText } from './parse/parser.ts'
import { isTextLike, requireText } from './parse/text.ts'
import { titleOfPayload } from './payload.ts'

/** Chunker settings for attachments. There is no overlap, so the chunks together are exactly the text. */
const attachmentChunks = {
  title: null,
  service: {
    engine: 'langchain_ts',
    strategy: 'recursive',
    chunkUnit: 'characters',
    maxChunkSize: 1_000,
    minChunkSize: 250,
    overlapSize: 0,
  },
  override: undefined,
  layout: { isMarkdown: false, places: [] },
  fittedIn: undefined,
} as const

/** The caller that uploads a file. */
type UploadingCaller = Pick<Caller, 'auth' | 'client' | 'signal'>

interface ExtractOptions {
  readonly workspaceId: string
  /** True to read the properties of Markdown. */
  readonly withProperties: boolean
}

/** Converts uploaded files to ingest requests. */
export class Uploads {
  constructor(
    private readonly parts: {
      readonly clock: Pick<Clock, 'now'>
      readonly docling: Docling
      readonly files: FileReader
      /** Runs text operations, which can take a long time. */
      readonly index: IndexThreads
    },
  ) {}

  /**
   * Extracts the text of an uploaded file, and returns the ingest request for it. Validates the other form fields after
   * the extraction. Metadata of the request takes precedence over that of the file.
   *
   * @throws invalid_parser, unsupported_file_type, docling_unavailable, extraction_failed, empty_document
   * @throws payload_too_large  the text of the file is too long
   * @throws invalid_metadata, invalid_chunker, invalid_visible_to, validation_error
   * @see docs/ingesting.md#files-over-http
   */
  async read(
    upload: ReceivedForm<IngestForm>,
    workspaceId: string,
    caller: UploadingCaller,
  ): Promise<StructuredIngest> {
    const { file } = upload
    const startedAtMs = this.parts.clock.now()
    const {
      text,
      parser,
      version,
      layout,
      metadata: found,
    } = await this.textOf(upload, { workspaceId, withProperties: true }, caller)
    const { parser: _parser, metadata, ...fields } = upload.texts()
    const ms = Math.max(0, this.parts.clock.now() - startedAtMs)
    const startedAt = new Date(startedAtMs).toISOString()
    return {
      ...fields,
      text,
      layout,
      extraction: {
        parser: { name: parser, version },
        stages: [{ name: 'extracting', startedAt, ms }],
      },
      metadata: {
        ...found,
        ...metadata,
        ingestParser: parser,
        // The contract lists the metadata that `native` adds.
        ...(upload.text('parser') !== 'native' && {
          fileHash: await this.parts.index.run(turnOf(workspaceId, caller), 'hashFile', file.path),
        }),
        ...(version !== null && { ingestParserVersion: version }),
      },
      sourceFilename: file.name,
      fileType: file.type,
      fileSize: file.sizeBytes,
    }
  }

  /**
   * Returns the text of a file that is attached to a conversation, and the offsets at which its chunks end.
   *
   * @throws invalid_parser, unsupported_file_type, docling_unavailable, extraction_failed, empty_document
   * @throws payload_too_large  the text is too long for an attachment
   */
  async readAttachment(
    upload: ReceivedForm<AttachmentForm>,
    workspaceId: string,
    caller: UploadingCaller,
  ): Promise<AttachmentText> {
    const { text } = await this.textOf(upload, { workspaceId, withProperties: false }, caller)
    requireShortText(text, 'Attach a part of the file, or ingest the file into a knowledge base.')
    const { chunks } = await this.parts.index.run(turnOf(workspaceId, caller), 'prepare', {
      text,
      ...attachmentChunks,
    })
    let end = 0
    return { text, chunkEnds: chunks.map(chunk => (end += chunk.text.length)) }
  }

  /**
   * Returns the text of a file, and its chunks by each of the requested chunkers. Stores nothing.
   *
   * @throws invalid_parser, unsupported_file_type, docling_unavailable, extraction_failed, empty_document, invalid_chunker
   * @throws payload_too_large  the text is too long for a preview
   */
  async previewChunks(
    upload: ReceivedForm<ChunkPreviewForm>,
    workspaceId: string,
    caller: UploadingCaller,
  ): Promise<ChunkPreview> {
    const { name, type } = upload.file
    const { text, layout, metadata } = await this.textOf(
      upload,
      { workspaceId, withProperties: true },
      caller,
    )
    requireShortText(text, 'Preview a part of the file.')
    const { chunkers: services } = upload.texts()
    const previews = await this.parts.index.run(turnOf(workspaceId, caller), 'preview', {
      text,
      layout: layoutOf({ layout, fileType: type, sourceFilename: name }),
      services,
    })
    return { text, title: titleOfPayload(metadata), previews }
  }

  private async textOf(
    upload: ReceivedForm<Pick<AttachmentForm, 'parser'>>,
    options: ExtractOptions,
    caller: UploadingCaller,
  ): Promise<ExtractedText> {
    const extracted = await this.extract(upload.text('parser'), upload.file, options, caller)
    if (extracted.text.trim() === '') throw new WbError('empty_document', 'the file contains no text')
    return extracted
  }

  private async extract(
    parser: IngestForm['parser'],
    file: UploadedFile,
    { workspaceId, withProperties }: ExtractOptions,
    caller: UploadingCaller,
  ): Promise<ExtractedText> {
    const { docling, files, index } = this.parts
    const { signal } = caller
    const turn = turnOf(workspaceId, caller)
    const convert = async () => requireText(await docling.convert(file, signal))
    if (parser === 'docling') return convert()
    if (parser === 'native') {
      if (isTextLike(file)) return index.run(turn, 'extract', { path: file.path })
      return requireText({ ...(await files.readNatively(file, turn)), parser })
    }
    const readStructured = async (): Promise<ExtractedText> => {
      const {
        text,
        format,
        title,
        author,
        date,
        places = [],
        properties = {},
      } = await files.read(
        file,
        { canBeText: isTextLike(file), withProperties: withProperties && hasSections(file.type, file.name) },
        turn,
      )
      if (format === 'text')
        return requireText({ text, parser: 'native', version: null, metadata: properties })
      return requireText({
        text,
        parser: 'structured',
        version: null,
        layout: { isMarkdown: true, places },
        metadata: { ...(title && { title }), ...(author && { author }), ...(date && { date }) },
      })
    }
    if (isTextLike(file) || !docling.isConfigured) return readStructured()
    return convert().catch(error => {
      if (error instanceof WbError && error.code === 'docling_unavailable') return readStructured()
      throw error
    })
  }
}

function turnOf(workspaceId: string, caller: UploadingCaller): QueueTurn {
  return { workspaceId, member: queueMember(caller), signal: caller.signal }
}

/** @throws payload_too_large */
function requireShortText(text: string, hint: string): void {
  const { attachmentTextChars } = limits
  if (text.length > attachmentTextChars)
    throw new WbError(
      'payload_too_large',
      `file: the text is longer than ${attachmentTextChars} characters`,
      { hint },
    )
}
