import { readFile } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import { readBody } from '../../base/read-body.ts'
import { WbError } from '../../contract/errors.ts'
import type { SourceFile } from '../../formats/file-reader.ts'
import type { ExtractedText } from './parser.ts'

const timeoutMsDefault = 60_000
const responseBytesMax = 128_000_000

export interface DoclingSettings {
  readonly url?: string
  readonly timeoutMs?: number
}

interface DoclingParts {
  readonly clock: Clock
  /** Does not follow redirects. */
  readonly fetch: typeof fetch
}

/** Client of an external service that converts documents to Markdown. */
export class Docling {
  constructor(
    private readonly settings: DoclingSettings,
    private readonly parts: DoclingParts,
  ) {}

  get isConfigured(): boolean {
    return this.settings.url !== undefined
  }

  /**
   * Converts a file to Markdown.
   *
   * @throws docling_unavailable  the service is not configured, cannot be reached, or rejects the request
   * @throws extraction_failed    the response has no text
   */
  async convert(file: SourceFile, signal: AbortSignal): Promise<ExtractedText> {
    const { url, timeoutMs = timeoutMsDefault } = this.settings
    if (url === undefined)
      throw new WbError('docling_unavailable', 'no document converter is configured', {
        hint: 'Set DOCLING_URL, or send parser=native.',
      })
    const form = await encodeForm(file)
    signal.throwIfAborted()
    const request = (timeoutSignal: AbortSignal) => this.request(url, form, timeoutSignal)
    const response = await withTimeout(this.parts.clock, timeoutMs, request, signal).catch(cause => {
      signal.throwIfAborted()
      throw cause instanceof WbError ? cause : doclingUnavailable('cannot be reached', cause)
    })
    return {
      text: markdownOf(response),
      parser: 'docling',
      version: null,
      layout: { isMarkdown: true, places: [] },
    }
  }

  private async request(url: string, form: Response, signal: AbortSignal): Promise<unknown> {
    const response = await this.parts.fetch(`${url.replace(/\/+$/, '')}/v1/convert/file`, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': form.headers.get('content-type')! },
      body: new Uint8Array(await form.arrayBuffer()),
      signal,
    })
    if (!response.ok) {
      await response.body?.cancel()
      throw doclingUnavailable(`responded with status ${response.status}`)
    }
    const body = await readBody(response.body, responseBytesMax)
    return JSON.parse(body.toString('utf8'))
  }
}

/**
 * Returns the multipart form of a request as a `Response`, which encodes it and has its content type.
 *
 * @see https://github.com/docling-project/docling-serve/blob/main/docs/usage.md
 */
async function encodeForm({ name, type, path }: SourceFile): Promise<Response> {
  const form = new FormData()
  form.set('files', new Blob([await readFile(path)], { type }), name)
  form.set('to_formats', 'md')
  form.set('return_as_file', 'false')
  return new Response(form)
}

/**
 * Returns the Markdown of a response, or its plain text if there is no Markdown.
 *
 * @see docs/ingesting.md#files-over-http
 */
function markdownOf(response: unknown): string {
  const { document } = (response ?? {}) as { document?: { md_content?: unknown; text_content?: unknown } }
  const text = document?.md_content ?? document?.text_content
  if (typeof text === 'string') return text
  throw new WbError('extraction_failed', 'the document converter could not convert the file')
}

function doclingUnavailable(problem: string, cause?: unknown): WbError {
  return new WbError('docling_unavailable', `the document converter ${problem}`, {}, { cause })
}
