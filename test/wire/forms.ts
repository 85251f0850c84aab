import type { Sent } from './harness.ts'

/** A part of a form; a part with a file name is a file. */
export interface Part {
  readonly name?: string
  readonly fileName?: string
  readonly type?: string
  readonly body: string | Buffer
}

export const boundary = 'wb-boundary-4c1f'

export function file(body: string | Buffer, about: Partial<Part> = {}): Part {
  return { name: 'file', fileName: 'notes.txt', type: 'text/plain', body, ...about }
}

export function text(name: string, body: string): Part {
  return { name, body }
}

/** Encodes a form like a browser. */
export function formBytes(parts: readonly Part[]): Buffer {
  const pieces = parts.flatMap(({ name, fileName, type, body }) => [
    Buffer.from(`--${boundary}\r\nContent-Disposition: form-data`),
    Buffer.from(name === undefined ? '' : `; name="${name}"`),
    Buffer.from(fileName === undefined ? '' : `; filename="${fileName}"`),
    Buffer.from(type === undefined ? '\r\n\r\n' : `\r\nContent-Type: ${type}\r\n\r\n`),
    Buffer.from(body),
    Buffer.from('\r\n'),
  ])
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)])
}

export const formHeaders = { 'content-type': `multipart/form-data; boundary=${boundary}` }

export function form(...parts: Part[]): Sent {
  return { raw: formBytes(parts), headers: formHeaders }
}
