import type { Host } from '../base/threads.ts'
import type { Ingest, IngestForm } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import type { Upload, UploadedFile } from '../contract/route.ts'
import type { Docling } from './parse/docling.ts'
import { isTextLike, requireText } from './parse/index.ts'
import type { Extracted } from './parse/parser.ts'
import type { PassageOps } from './passages.ts'

/** Converts uploaded files to ingest requests. */
export class Uploads {
  constructor(
    private readonly parts: {
      readonly docling: Docling
      /** Host for text extraction, which can take long. */
      readonly index: Host<PassageOps>
    },
  ) {}

  /**
   * Reads an uploaded file, and returns the ingest request for its text. Validates other form fields last.
   *
   * @throws invalid_parser, unsupported_file_type, docling_unavailable, extraction_failed, empty_document
   * @throws payload_too_large  the text of the file is too long
   * @throws invalid_metadata, invalid_chunker, invalid_visible_to, validation_error
   * @see docs/ingesting.md#files-over-http
   */
  async read(upload: Upload<IngestForm>, signal: AbortSignal): Promise<Ingest> {
    const { file } = upload
    const { text, parser, version } = await this.extract(upload.text('parser'), file, signal)
    if (text.trim() === '') throw new WbError('empty_document', 'the file holds no text')
    const { parser: _asked, metadata, ...fields } = upload.texts()
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

  private async extract(
    parser: IngestForm['parser'],
    file: UploadedFile,
    signal: AbortSignal,
  ): Promise<Extracted> {
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
