import { describe, expect, test } from 'vitest'
import { type Kind, serialise } from './kinds.ts'
import { jsonType, useRefusals } from './refusals.ts'
import { batch, ingestFields } from './routes.ts'
import { placed } from './stage.ts'

const refusals = useRefusals()

describe('lines of a batch', () => {
  const headers = { 'content-type': 'application/x-ndjson' }

  test('S7.3-13: each bad line is refused by name; the batch itself is no 5xx', async () => {
    await refusals.all(async findings => {
      const spoilt = Object.entries(ingestFields).flatMap(([field, kind]: [string, Kind]) => {
        return kind.wrong.map(value => ({ field, kind, raw: serialise({ text: 'spoilt', [field]: value }) }))
      })
      const raw = spoilt.map(line => line.raw).join('\n')
      const reply = await refusals.wire.send(placed(batch, refusals.stage.own), { raw, headers })
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

  test('lines that are no JSON object', async () => {
    const lines = [
      'null',
      '[]',
      '"x"',
      '5',
      '{',
      '{"text":NaN}',
      `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
    ]
    await refusals.all(async findings => {
      const reply = await refusals.wire.send(placed(batch, refusals.stage.own), {
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

  test('invalid UTF-8, another type, no type, nothing, too much', async () => {
    const broken = Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}\n')])
    const line = placed(batch, refusals.stage.own)
    await refusals.all(async findings => {
      const utf8 = await refusals.wire.send(line, { raw: broken, headers })
      const refusedLine = utf8.status === 200 && /"status":400/.test(utf8.text)
      findings.add('invalid UTF-8', utf8, refusedLine ? undefined : refusals.complaint(utf8))
      const typed = await refusals.wire.send(line, { raw: '{"text":"x"}', headers: jsonType })
      findings.add('application/json', typed, refusals.complaint(typed))
      const untyped = await refusals.wire.send(line, { raw: '{"text":"x"}' })
      findings.add('no type', untyped, refusals.complaint(untyped))
      const large = await refusals.wire.send(line, { raw: Buffer.alloc(51_000_000, ' '), headers })
      findings.add('51 MB', large, refusals.complaint(large))
      const empty = await refusals.wire.send(line, { raw: '', headers })
      expect(empty.status, 'nothing').toBeLessThan(500)
    })
  })
})
