import { describe, expect, test } from 'vitest'
import { jsonType, useBadInputRuntime } from './bad-input-runtime.ts'
import { type InvalidValues, serialize } from './invalid-values.ts'
import { batchRoute, ingestFields } from './routes.ts'
import { withPathIds } from './test-data.ts'

const runtime = useBadInputRuntime()

describe('lines of a batch', () => {
  const headers = { 'content-type': 'application/x-ndjson' }

  test('S7.3-13: rejects each invalid line with the name of its field, and answers the batch with 200', async () => {
    await runtime.expectAllRejected(async findings => {
      const spoilt = Object.entries(ingestFields).flatMap(([field, kind]: [string, InvalidValues]) => {
        return kind.wrong.map(value => ({ field, kind, raw: serialize({ text: 'spoilt', [field]: value }) }))
      })
      const raw = spoilt.map(line => line.raw).join('\n')
      const reply = await runtime.wire.send(withPathIds(batchRoute, runtime.data.own), { raw, headers })
      expect(reply.status, reply.text.slice(0, 300)).toBe(200)
      const outcomes = reply.text.split('\n').filter(Boolean)
      expect(outcomes).toHaveLength(spoilt.length)
      for (const [index, { field, kind, raw: sent }] of spoilt.entries()) {
        const { line, status, error } = JSON.parse(outcomes[index]!) as {
          line: number
          status: number
          error?: { code: string; message: string }
        }
        const isRefused = line === index + 1 && status === 400 && kind.codes.includes(String(error?.code))
        const isNamed = error?.message.includes(field)
        findings.add(
          sent.slice(0, 120),
          { ...reply, text: outcomes[index]! },
          !(isRefused && isNamed) && 'not refused by name',
        )
      }
    })
  })

  test('rejects lines that are not a JSON object', async () => {
    const lines = [
      'null',
      '[]',
      '"x"',
      '5',
      '{',
      '{"text":NaN}',
      `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
    ]
    await runtime.expectAllRejected(async findings => {
      const reply = await runtime.wire.send(withPathIds(batchRoute, runtime.data.own), {
        raw: lines.join('\n'),
        headers,
      })
      const outcomes = reply.text.split('\n').filter(Boolean)
      expect(outcomes, reply.text.slice(0, 300)).toHaveLength(lines.length)
      for (const [index, text] of outcomes.entries())
        findings.add(
          lines[index]!.slice(0, 60),
          { ...reply, text },
          !/"status":400/.test(text) && 'not refused',
          !/"code":"validation_error"/.test(text) && 'expected validation_error',
        )
    })
  })

  test('rejects invalid UTF-8, another content type, no content type and an oversized body', async () => {
    const broken = Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')])
    const line = withPathIds(batchRoute, runtime.data.own)
    await runtime.expectAllRejected(async findings => {
      const utf8 = await runtime.wire.send(line, { raw: broken, headers })
      const refusedLine = utf8.status === 200 && /"status":400/.test(utf8.text)
      findings.add('invalid UTF-8', utf8, refusedLine ? undefined : runtime.problemOf(utf8))
      const typed = await runtime.wire.send(line, { raw: '{"text":"x"}', headers: jsonType })
      findings.add('application/json', typed, runtime.problemOf(typed))
      const untyped = await runtime.wire.send(line, { raw: '{"text":"x"}' })
      findings.add('no type', untyped, runtime.problemOf(untyped))
      const large = await runtime.wire.send(line, { raw: Buffer.alloc(51_000_000, ' '), headers })
      findings.add('51 MB', large, runtime.problemOf(large))
      const empty = await runtime.wire.send(line, { raw: '', headers })
      expect(empty.status, 'nothing').toBeLessThan(500)
    })
  })
})
