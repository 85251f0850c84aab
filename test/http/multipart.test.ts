import fs, { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import type { ReceivedForm } from '../../src/contract/route.ts'
import { unlimitedReservation } from '../../src/http/body-memory.ts'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import { createFormReader } from '../../src/http/multipart.ts'
import { scratchDir } from '../harness/runtime.ts'
import { file, formBytes, formHeaders, text } from '../wire/forms.ts'

const schema = z.object({ note: z.string().optional() })
const body = { kind: 'multipart', schema, json: [], limitBytes: 1_000_000 } as const

interface ParsedForm {
  readonly content: Buffer
  readonly note: unknown
  readonly mode: number
}

/** Reads a form from chunks of bytes. */
function receive(folder: string, pieces: readonly Uint8Array[]): Promise<ParsedForm> {
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(piece)
      controller.close()
    },
  })
  const incoming = { headers: new Headers(formHeaders), openBody: () => source } as unknown as IncomingRequest
  const keep = async (upload: ReceivedForm<Record<string, unknown>>) => ({
    content: readFileSync(upload.file.path),
    note: upload.text('note'),
    mode: statSync(upload.file.path).mode & 0o777,
  })
  return createFormReader(body, folder)(incoming, unlimitedReservation).receive(keep)
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [...new Set(places.map(cut => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...cuts].map((from, at) => bytes.subarray(from, cuts[at] ?? bytes.length))
}

const cuts = fc.array(fc.nat(), { maxLength: 12 })
const content = fc.uint8Array({ minLength: 1, maxLength: 3_000 }).map(bytes => Buffer.from(bytes))

describe('a multipart form', () => {
  test('stores its file for the owner of the data directory only', async () => {
    const received = await receive(scratchDir(), [formBytes([file(Buffer.from('secret'))])])
    expect(received.mode).toBe(0o600)
  })

  test('stores any content unchanged, regardless of the chunk boundaries', async () => {
    const folder = scratchDir()
    await fc.assert(
      fc.asyncProperty(content, fc.string({ unit: 'grapheme-ascii' }), cuts, async (sent, note, places) => {
        const bytes = formBytes([text('note', note), file(sent)])
        const received = await receive(folder, cutAt(bytes, places))
        expect(received.content.equals(sent)).toBe(true)
        expect(received.note).toBe(note)
      }),
    )
    expect(readdirSync(folder)).toEqual([])
  })

  test('a form with any corruption results in a file or an error, and leaves no files behind', async () => {
    const folder = scratchDir()
    const whole = formBytes([
      text('note', 'a note'),
      file('The text of a file.\r\n--wb-bound'),
      file('More.'),
    ])
    const spoil = fc.record({
      at: fc.nat(whole.length - 1),
      byte: fc.nat(255),
      end: fc.integer({ min: 0, max: whole.length }),
      tail: fc.uint8Array({ maxLength: 40 }),
    })
    const codes = new Set<string>()
    await fc.assert(
      fc.asyncProperty(spoil, cuts, async ({ at, byte, end, tail }, places) => {
        const bytes = Buffer.from(whole)
        bytes[at] = byte
        const sent = Buffer.concat([bytes.subarray(0, end), tail])
        const outcome = await receive(folder, cutAt(sent, places)).then(
          () => 'file',
          error => error.code,
        )
        expect(outcome).toMatch(/^(?:file|invalid_multipart|missing_file|empty_file|validation_error)$/)
        codes.add(outcome)
      }),
      { numRuns: 500 },
    )
    expect([...codes]).toEqual(expect.arrayContaining(['invalid_multipart', 'file']))
    expect(readdirSync(folder)).toEqual([])
  })

  test('rejects a part with too long a header, regardless of the chunk boundaries', async () => {
    const folder = scratchDir()
    const headed = (bytes: number) =>
      formBytes([text('note', 'a note'), file('x', { type: `text/plain\r\nX-Long: ${'a'.repeat(bytes)}` })])
    for (const size of [7, 700, 100_000]) {
      const cut = (whole: Buffer) =>
        Array.from({ length: Math.ceil(whole.length / size) }, (_, n) =>
          whole.subarray(n * size, (n + 1) * size),
        )
      expect((await receive(folder, cut(headed(15_000)))).note).toBe('a note')
      for (const bytes of [17_000, 60_000])
        await expect(receive(folder, cut(headed(bytes)))).rejects.toMatchObject({
          code: 'invalid_multipart',
          message: 'a part of the form has more than 16384 bytes of headers',
        })
      const epilogue = Buffer.concat([formBytes([file('x')]), Buffer.alloc(40_000, 'a')])
      expect((await receive(folder, cut(epilogue))).content.toString()).toBe('x')
    }
    expect(readdirSync(folder)).toEqual([])
  })

  test('removes a partial file if the source fails', async () => {
    const folder = scratchDir()
    const [first] = cutAt(formBytes([file(Buffer.alloc(100_000, 'a'))]), [50_000])
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (controller.desiredSize === 1) controller.enqueue(first!)
        controller.error(new Error('gone'))
      },
    })
    const incoming = {
      headers: new Headers(formHeaders),
      openBody: () => source,
    } as unknown as IncomingRequest
    const received = createFormReader(body, folder)(incoming, unlimitedReservation).receive(
      async () => 'kept',
    )
    await expect(received).rejects.toMatchObject({ code: 'invalid_multipart' })
    expect(readdirSync(folder)).toEqual([])
  })

  test('reports a failed write as a server error', async () => {
    const inTheWay = join(scratchDir(), 'a-file')
    writeFileSync(inTheWay, '')
    const received = receive(join(inTheWay, 'uploads'), [formBytes([file('x')])])
    await expect(received).rejects.toMatchObject({ code: 'control_plane_unavailable', status: 503 })
  })

  test('reports a full disk as a server error, also at the last byte of the form', async () => {
    const folder = scratchDir()
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { syscall: 'write' })
    const write = vi
      .spyOn(fs.WriteStream.prototype, '_write')
      .mockImplementation((_bytes, _encoding, done) => {
        setTimeout(() => done(full), 20)
      })
    onTestFinished(() => write.mockRestore())
    const received = receive(folder, [formBytes([file('x')])])
    await expect(received).rejects.toMatchObject({ code: 'control_plane_unavailable', status: 503 })
    expect(readdirSync(folder)).toEqual([])
  })

  test('removes the file after the handler fails', async () => {
    const folder = scratchDir()
    const incoming = () =>
      ({
        headers: new Headers(formHeaders),
        openBody: () => new Blob([formBytes([file('x')])]).stream(),
      }) as unknown as IncomingRequest
    const work = createFormReader(body, folder)(incoming(), unlimitedReservation).receive(async () => {
      expect(readdirSync(folder)).toHaveLength(1)
      throw new Error('failed at work')
    })
    await expect(work).rejects.toThrow('failed at work')
    expect(readdirSync(folder)).toEqual([])
  })
})
