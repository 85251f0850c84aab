import type { Buffer as Bytes } from 'node:buffer'
import type { z } from 'zod'
import { WbError } from '../contract/errors.ts'
import type { Line } from '../contract/route.ts'
import { chunksOf, type Source } from './body.ts'
import { parseJson } from './json.ts'
import { validate } from './validate.ts'

const newline = 0x0a

/**
 * The lines of an NDJSON body, read as they are asked for. A line that is refused is given with its error; the
 * lines after it go on. Blank lines are counted, not given.
 *
 * @throws payload_too_large the lines together are larger than allowed; those before were given
 */
export async function* readLines<S extends z.ZodType>(
  source: Source | null,
  schema: S,
  limitBytes: number,
): AsyncGenerator<Line<z.output<S>>, void, undefined> {
  let line = 0
  for await (const bytes of splitLines(chunksOf(source, limitBytes))) {
    line++
    if (!isBlank(bytes)) yield readLine(bytes, line, schema)
  }
}

function readLine<S extends z.ZodType>(bytes: Bytes, line: number, schema: S): Line<z.output<S>> {
  try {
    return { line, value: validate(schema, parseJson(bytes)) }
  } catch (error) {
    if (error instanceof WbError) return { line, error }
    throw error
  }
}

function isBlank(bytes: Bytes): boolean {
  return bytes.every(byte => byte === 0x20 || byte === 0x09 || byte === 0x0d)
}

async function* splitLines(chunks: AsyncIterable<Uint8Array>) {
  let pieces: Bytes[] = []
  for await (const raw of chunks) {
    const chunk = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
    let from = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      pieces.push(chunk.subarray(from, end))
      yield Buffer.concat(pieces)
      pieces = []
      from = end + 1
    }
    if (from < chunk.length) pieces.push(chunk.subarray(from))
  }
  if (pieces.length > 0) yield Buffer.concat(pieces)
}

/**
 * Objects as a stream of lines. The next one is asked for when the reader has taken the last, and the iteration is
 * ended when the reader goes away.
 *
 * @param failed  the last line when the iteration breaks, as the status is long sent
 * @param done    called once, however it ends
 */
export function writeLines(
  objects: AsyncIterator<object>,
  first: IteratorResult<object>,
  failed: (error: unknown) => object,
  done: () => void,
): ReadableStream<Uint8Array> {
  const encode = (object: object) => Buffer.from(`${JSON.stringify(object)}\n`)
  let waiting: IteratorResult<object> | undefined = first
  let left = false

  async function pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    try {
      const { done: ended, value } = waiting ?? (await objects.next())
      waiting = undefined
      if (left) return
      if (!ended) return controller.enqueue(encode(value))
    } catch (error) {
      if (left) return
      controller.enqueue(encode(failed(error)))
    }
    controller.close()
    done()
  }

  async function cancel(): Promise<void> {
    left = true
    done()
    await objects.return?.()
  }

  return new ReadableStream({ pull, cancel }, { highWaterMark: 0 })
}
