import type { OperationHost } from '../base/threads.ts'
import type { AttachmentForm, AttachmentText } from '../contract/attachments.ts'
import type { Ingest, IngestForm } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import { limits } from '../contract/limits.ts'
import type { ReceivedForm, UploadedFile } from '../contract/route.ts'
import type { Docling } from './parse/docling.ts'
import { isTextLike, requireText } from './parse/index.ts'
import type { ExtractedText } from './parse/parser.ts'
import type { PassageOperations } from './passage-operations.ts'

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
  hasSections: false,
  fittedIn: undefined,
} as const

/** Converts uploaded files to ingest requests. */
export class Uploads {
  constructor(
    private readonly parts: {
      readonly docling: Docling
      /** Host for text extraction, which can take a long time. */
      readonly index: OperationHost<PassageOperations>
    },
  ) {}

  /**
   * Extracts the text of an uploaded file, and returns the ingest request for it. Validates the other form fields after
   * the extraction.
   *
   * @throws invalid_parser, unsupported_file_type, docling_unavailable, extraction_failed, empty_document
   * @throws payload_too_large  the text of the file is too long
   * @throws invalid_metadata, invalid_chunker, invalid_visible_to, validation_error
   * @see docs/ingesting.md#files-over-http
   */
  async read(upload: ReceivedForm<IngestForm>, signal: AbortSignal): Promise<Ingest> {
    const { file } = upload
    const { text, parser, version } = await this.textOf(upload, signal)
    const { parser: _parser, metadata, ...fields } = upload.texts()
    return {
      ...fields,
      text,
      metadata: {
        ...metadata,
        ingestParser: parser,
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
  async readAttachment(upload: ReceivedForm<AttachmentForm>, signal: AbortSignal): Promise<AttachmentText> {
    const { text } = await this.textOf(upload, signal)
    const { attachmentTextChars } = limits
    if (text.length > attachmentTextChars)
      throw new WbError(
        'payload_too_large',
        `file: the text is longer than ${attachmentTextChars} characters`,
        { hint: 'Attach a part of the file, or ingest the file into a knowledge base.' },
      )
    const { chunks } = await this.parts.index.run('prepare', { text, ...attachmentChunks })
    let end = 0
    return { text, chunkEnds: chunks.map(chunk => (end += chunk.text.length)) }
  }

  private async textOf(upload: ReceivedForm<AttachmentForm>, signal: AbortSignal): Promise<ExtractedText> {
    const extracted = await this.extract(upload.text('parser'), upload.file, signal)
    if (extracted.text.trim() === '') throw new WbError('empty_document', 'the file contains no text')
    return extracted
  }

  private async extract(
    parser: IngestForm['parser'],
    file: UploadedFile,
    signal: AbortSignal,
  ): Promise<ExtractedText> {
    const { docling, index } = this.parts
    const { name, type, path } = file
    const natively = () => index.run('extract', { name, type, path })
    const convert = async () => requireText(await docling.convert(file, signal))
    if (parser === 'docling') return convert()
    if (parser === 'native' || isTextLike(file) || !docling.isConfigured) return natively()
    return convert().catch(error => {
      if (error instanceof WbError && error.code === 'docling_unavailable') return natively()
      throw error
    })
  }
}
