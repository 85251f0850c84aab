import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** The response to the next conversion. */
export interface ConversionResponse {
  status?: number
  /** Replaces the whole body. */
  body?: unknown
  md?: string | null
  text?: string | null
  /** Sends no response until the client disconnects. */
  hang?: boolean
}

export interface ConversionRequest {
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  readonly fileName: string
  readonly fileType: string
  readonly bytes: Buffer
}

export interface DoclingServer {
  readonly url: string
  readonly received: ConversionRequest[]
  script(next: ConversionResponse): void
  close(): Promise<void>
}

/**
 * Starts a document converter that accepts a form with one file, on a free loopback port.
 *
 * @see https://github.com/docling-project/docling-serve
 */
export async function startDocling(): Promise<DoclingServer> {
  const received: ConversionRequest[] = []
  let next: ConversionResponse = {}
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const headers = { 'content-type': String(request.headers['content-type']) }
    const form = await new Response(Buffer.concat(pieces), { headers }).formData()
    const file = form.get('files') as File
    const fields = [...form]
      .filter(([name]) => name !== 'files')
      .map(([name, value]) => [name, String(value)])
    received.push({
      path: `${request.method} ${request.url}`,
      fields: Object.fromEntries(fields),
      fileName: file.name,
      fileType: file.type,
      bytes: Buffer.from(await file.arrayBuffer()),
    })
    if (!next.hang) answer(response, file.name, next)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    script(step) {
      next = step
    },
    close() {
      server.closeAllConnections()
      return new Promise(resolve => server.close(() => resolve()))
    },
  }
}

function answer(
  response: ServerResponse,
  filename: string,
  { status = 200, body, md, text }: ConversionResponse,
) {
  const document = {
    filename,
    md_content: md === undefined ? '# Converted\n\nA wing.\n' : md,
    json_content: null,
    html_content: null,
    text_content: text ?? null,
    doctags_content: null,
  }
  const whole = body ?? { document, status: 'success', errors: [], processing_time: 0.1, timings: {} }
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
}
