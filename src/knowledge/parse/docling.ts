import { readFile } from 'node:fs/promises'
import { WbError } from '../../contract/errors.ts'
import { readWhole } from '../../models/outbound.ts'
import type { SentFile } from './index.ts'
import type { Extracted } from './parser.ts'

const timeoutMsDefault = 60_000
const answerBytesMax = 128_000_000

export interface DoclingSettings {
  readonly url?: string
  readonly timeoutMs?: number
}

/** A converter of documents beside the runtime, which makes Markdown of them. */
export class Docling {
  /** @param send  follows no redirect */
  constructor(
    private readonly settings: DoclingSettings,
    private readonly send: typeof fetch,
  ) {}

  get isConfigured(): boolean {
    return this.settings.url !== undefined
  }

  /**
   * @throws docling_unavailable  it is not configured, cannot be reached, or refuses
   * @throws extraction_failed    it could make nothing of the file
   */
  async convert(file: SentFile, signal: AbortSignal): Promise<Extracted> {
    const { url, timeoutMs = timeoutMsDefault } = this.settings
    if (url === undefined)
      throw new WbError('docling_unavailable', 'no document converter is configured', {
        hint: 'Set DOCLING_URL, or send parser=native.',
      })
    const form = await formOf(file)
    signal.throwIfAborted()
    const stop = new AbortController()
    const leave = () => stop.abort(signal.reason)
    signal.addEventListener('abort', leave)
    // Held by its timer: a signal of `AbortSignal.timeout` that is part of another may be collected before it fires.
    const timer = setTimeout(() => stop.abort(), timeoutMs)
    const answer = await this.ask(url, form, stop.signal)
      .catch(cause => {
        signal.throwIfAborted()
        throw cause instanceof WbError ? cause : unavailable('cannot be reached', cause)
      })
      .finally(() => {
        clearTimeout(timer)
        signal.removeEventListener('abort', leave)
      })
    return { text: markdownOf(answer), parser: 'docling', version: null }
  }

  private async ask(url: string, form: Response, signal: AbortSignal): Promise<unknown> {
    const answer = await this.send(`${url.replace(/\/+$/, '')}/v1/convert/file`, {
      method: 'POST',
      headers: { accept: 'application/json', 'content-type': form.headers.get('content-type')! },
      body: new Uint8Array(await form.arrayBuffer()),
      signal,
    })
    if (!answer.ok) {
      await answer.body?.cancel()
      throw unavailable(`answered with status ${answer.status}`)
    }
    const body = await readWhole(answer as never, answerBytesMax)
    return JSON.parse(body.toString('utf8'))
  }
}

/** @see https://github.com/docling-project/docling-serve/blob/main/docs/usage.md */
async function formOf({ name, type, path }: SentFile): Promise<Response> {
  const form = new FormData()
  form.set('files', new Blob([await readFile(path)], { type }), name)
  form.set('to_formats', 'md')
  form.set('return_as_file', 'false')
  return new Response(form)
}

/** The Markdown of an answer, else its plain text. @see contract 11.3 */
function markdownOf(answer: unknown): string {
  const { document } = (answer ?? {}) as { document?: { md_content?: unknown; text_content?: unknown } }
  const text = document?.md_content ?? document?.text_content
  if (typeof text === 'string') return text
  throw new WbError('extraction_failed', 'the document converter could make nothing of the file')
}

function unavailable(what: string, cause?: unknown): WbError {
  return new WbError('docling_unavailable', `the document converter ${what}`, {}, { cause })
}
