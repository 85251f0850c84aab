import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { parseRequestJson } from '../../src/base/request-json.ts'
import { limits } from '../../src/contract/limits.ts'
import { createTestApp, errorOf } from './test-app.ts'

const parse = (text: string) => parseRequestJson(Buffer.from(text))
const errorMessageOf = (text: string | Buffer) => {
  try {
    parseRequestJson(Buffer.from(text))
  } catch (error) {
    expect(error).toMatchObject({ code: 'validation_error' })
    return (error as Error).message
  }
  throw new Error(`passed: ${text.slice(0, 80)}`)
}
const nested = (levels: number, [open, close]: [string, string]) => open.repeat(levels) + close.repeat(levels)

describe('depth', () => {
  test.each([[['[', ']']], [['{"a":[', ']}']]] as [[string, string]][])(
    'accepts 64 levels of %s, and rejects one more',
    brackets => {
      const levels = limits.jsonDepth / (brackets[0].length > 1 ? 2 : 1)
      expect(() => parse(nested(levels, brackets))).not.toThrow()
      expect(errorMessageOf(`[${nested(levels, brackets)}]`)).toContain('nested deeper than 64')
    },
  )

  test('rejects 50,000 levels before it parses them, closed or not', () => {
    for (const text of [nested(50_000, ['[', ']']), '['.repeat(50_000), '{"a":'.repeat(50_000)])
      expect(errorMessageOf(text)).toContain('nested deeper')
  })

  test('rejects too many arrays, also before an unterminated string', () => {
    const arrays = '[],'.repeat(limits.jsonNodes)
    for (const end of ['0]', '"x']) expect(errorMessageOf(`[${arrays}${end}`)).toContain('larger than')
  })

  test('ignores brackets in strings, also after escaped quotes and backslashes', () => {
    const brackets = '['.repeat(100)
    for (const before of ['', '\\"', '\\\\', '\\\\\\"', '\\u005c\\"'])
      expect(() => parse(`["${before}${brackets}"]`)).not.toThrow()
    expect(errorMessageOf(`["\\\\",${nested(64, ['[', ']'])}]`)).toContain('nested deeper')
  })

  test('parses any JSON within the limits like JSON.parse', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 10 }), text => {
        fc.pre(!/\\u(?:00|d[89a-f])|__proto__|e\+?\d{3}/i.test(text))
        expect(parse(text)).toEqual(JSON.parse(text))
      }),
    )
  })
})

describe('invalid strings, keys and numbers', () => {
  test.each([
    [String.raw`{"a":{"b":["x","\u0000"]}}`, 'a.b.1: '],
    [String.raw`{"a":"\ud800"}`, 'a: '],
    [String.raw`{"a":"\uDC00 x"}`, 'a: '],
    [String.raw`{"a":{"k\u0000":1}}`, 'a: '],
    [String.raw`{"a":{"\ud83d":1}}`, 'a: '],
    ['{"a":{"__proto__":{}}}', 'a.__proto__: '],
    [String.raw`{"\u005f_proto__":1}`, '__proto__: '],
    [String.raw`"\u0000"`, 'the body '],
    ['{"a":[1,1e400]}', 'a.1: '],
    ['{"a":-1E+999}', 'a: '],
    [`{"a":${'9'.repeat(400)}}`, 'a: '],
  ])('rejects %s at %s', (text, location) => {
    expect(errorMessageOf(text).startsWith(location)).toBe(true)
  })

  test('rejects an infinite number of 309 digits at every offset, and accepts a finite one', () => {
    for (let offset = 0; offset < 620; offset++) {
      const before = '1,'.repeat(offset / 2) + ' '.repeat(offset % 2)
      expect(errorMessageOf(`[${before}${'9'.repeat(309)}]`)).toContain('finite')
      expect(() => parse(`[${before}${'1'.repeat(309)},1]`)).not.toThrow()
    }
  })

  test('accepts surrogate pairs, escaped backslashes and long strings', () => {
    expect(parse(String.raw`["\ud83d\ude00", "\\u0000", "\u00e9", "e400"]`)).toEqual([
      '😀',
      '\\u0000',
      'é',
      'e400',
    ])
    expect(parse('{"proto":1,"constructor":2}')).toEqual({ proto: 1, constructor: 2 })
  })

  test('ignores values of __proto__', () => {
    errorMessageOf('{"__proto__":{"polluted":true}}')
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined()
  })
})

describe('encoding', () => {
  test.each([
    ['a stray byte', [0x22, 0xff, 0x22]],
    ['a surrogate in UTF-8', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['an overlong encoding', [0x22, 0xc0, 0x80, 0x22]],
    ['half a character', [0x22, 0xc3]],
  ])('rejects %s', (_what, bytes) => {
    expect(errorMessageOf(Buffer.from(bytes))).toContain('UTF-8')
  })

  test('skips a byte order mark', () => {
    expect(parse('\ufeff{"a":1}')).toEqual({ a: 1 })
  })
})

describe('content type', () => {
  const send = async (type: string | undefined, more: Record<string, string> = {}) =>
    (
      await createTestApp().send('POST /api/v1/notes', {
        body: Buffer.from('{"name":"x"}'),
        headers: { ...(type === undefined ? undefined : { 'content-type': type }), ...more },
      })
    ).status

  test.each(['application/json', 'application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"'])(
    'accepts %s',
    async type => {
      expect(await send(type)).toBe(201)
    },
  )

  test.each([
    undefined,
    '',
    'text/plain',
    'text/json',
    'application/jsonp',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=application/json',
    'application/json; charset=utf-16',
  ])('rejects %s', async type => {
    expect(await send(type)).toBe(400)
  })

  test('rejects a compressed body', async () => {
    expect(await send('application/json', { 'content-encoding': 'gzip' })).toBe(400)
    expect(await send('application/json', { 'content-encoding': 'identity' })).toBe(201)
  })

  test.each(['', ' ', '{', 'null x', '{"name":NaN}', "{'name':'x'}"])('rejects the body %j', async body => {
    const response = await createTestApp().post(Buffer.from(body))
    expect(response.status).toBe(400)
    expect((await errorOf(response)).code).toBe('validation_error')
  })

  test('reads an optional body if there is one', async () => {
    const headers = { 'content-type': 'application/json' }
    const renew = async (init: RequestInit) => {
      const response = await createTestApp().send('POST /api/v1/notes/renew', init)
      return (await response.json()) as { name?: string; error?: { code: string } }
    }
    expect(await renew({})).toEqual({ name: 'unnamed' })
    expect(await renew({ headers })).toEqual({ name: 'unnamed' })
    expect(
      await renew({ headers, body: new ReadableStream({ start: it => it.close() }), duplex: 'half' }),
    ).toEqual({ name: 'unnamed' })
    expect(await renew({ headers, body: '{"name":"x"}' })).toEqual({ name: 'x' })
    expect((await renew({ headers, body: '{"name":5}' })).error!.code).toBe('validation_error')
    expect((await renew({ body: '{"name":"x"}' })).error!.code).toBe('validation_error')
  })

  test('rejects a missing body', async () => {
    const response = await createTestApp().send('POST /api/v1/notes', {
      headers: { 'content-type': 'application/json' },
    })
    expect((await errorOf(response)).message).toContain('empty')
  })
})

describe('size', () => {
  const body = (bytes: number) => Buffer.alloc(bytes, ' ').fill('{"name":"x"}', 0, 12)
  const chunked = (bytes: Buffer) => {
    const pieces = [bytes.subarray(0, 4_000_000), bytes.subarray(4_000_000)]
    return { body: ReadableStream.from(pieces), duplex: 'half' } as RequestInit
  }

  test('S8-01 S7.3-payload_too_large: accepts 10,000,000 bytes, and rejects one more, with and without a declared length', async () => {
    const { post, send } = createTestApp()
    const whole = body(limits.jsonBodyBytes)
    const over = body(limits.jsonBodyBytes + 1)
    const headers = { 'content-type': 'application/json' }
    expect((await post(whole)).status).toBe(201)
    expect((await send('POST /api/v1/notes', { headers, ...chunked(whole) })).status).toBe(201)
    for (const init of [{ body: over }, chunked(over)]) {
      const response = await send('POST /api/v1/notes', { headers, ...init })
      expect([response.status, (await errorOf(response)).code]).toEqual([413, 'payload_too_large'])
    }
  })

  test('rejects a declared length before authentication and before the body is read', async () => {
    const create = vi.fn()
    const { send } = createTestApp({ notes: { create } })
    const headers = { 'content-type': 'application/json', 'content-length': String(limits.jsonBodyBytes + 1) }
    expect((await send('POST /api/v1/notes', { headers, body: '{}' })).status).toBe(413)
    const other = { 'content-length': String(limits.jsonBodyBytes + 1) }
    expect((await send('POST /nowhere', { headers: other, body: '{}' })).status).toBe(413)
    expect(create).not.toHaveBeenCalled()
  })
})
