import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cookieValues } from '../../../src/auth/session/cookie-header.ts'
import { Sealer } from '../../../src/auth/session/sealer.ts'
import { SessionCookies, type StoredSession } from '../../../src/auth/session/session-cookies.ts'

const seal = new Sealer(['session-secret-of-a-test-of-32-bytes'])
const origin = 'http://localhost:8787'
const cookies = new SessionCookies({ sealer: seal, name: 'wb_session' })

/** Returns random text, because compression must not reduce its size. */
function token(chars: number): string {
  return Array.from({ length: chars }, (_, at) => ((at * 7919) % 36).toString(36)).join('')
}

function session(accessChars: number, refreshChars = 20): StoredSession {
  return {
    accessToken: token(accessChars),
    subject: 'alice',
    issuedAt: 1_800_000_000,
    refreshToken: token(refreshChars),
  }
}

/** Returns the `Cookie` header that a browser sends after the given `Set-Cookie` lines. */
function cookieHeader(lines: readonly string[]): string {
  return lines
    .filter(line => !line.includes('Max-Age=0'))
    .map(line => line.slice(0, line.indexOf(';')))
    .join('; ')
}

function writeCookies(stored: StoredSession, from = cookies, at = origin): string {
  return cookieHeader(from.write({ origin: at, cookies: null }, stored, 60))
}

describe('session cookie', () => {
  test('S2.5-01 S2.5-02 S2.5-03 S2.5-06: has exactly this line', () => {
    const [line, ...more] = cookies.write({ origin, cookies: null }, session(800), 3_599)
    expect(more).toEqual([])
    expect(line).toMatch(
      /^wb_session=v2\.[\w-]{16}\.[\w-]+\.[\w-]{22}; Path=\/; Max-Age=3599; HttpOnly; SameSite=Lax$/,
    )
  })

  test.each([
    ['http://localhost', false],
    ['https://wb.example', true],
    ['HTTPS://wb.example', true],
    ['httpsx://wb.example', false],
  ])('S2.5-04: Secure on %s: %s', (at, secure) => {
    const site = { origin: at, cookies: null }
    for (const line of [...cookies.write(site, session(9_000), 60), ...cookies.clear(site)])
      expect(line.endsWith('; Secure')).toBe(secure)
  })

  test('S2.5-08 S2.5-09 S5.7-17: contains the unchanged access token, and the refresh token if there is one', () => {
    const whole = session(900)
    const { refreshToken: _, ...without } = whole
    expect(cookies.read({ origin, cookies: writeCookies(whole) })).toEqual(whole)
    expect(cookies.read({ origin, cookies: writeCookies(without) })).toEqual(without)
  })

  test('restores any session that fits from at most five cookies of 3,500 bytes [security rule 12]', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 10_000 }),
        fc.integer({ min: 1, max: 600 }),
        (access, refresh) => {
          const lines = cookies.write({ origin, cookies: null }, session(access, refresh), 86_400)
          expect(lines.length).toBeLessThanOrEqual(5)
          for (const line of lines) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(3_500)
          expect(cookies.read({ origin, cookies: cookieHeader(lines) })).toEqual(session(access, refresh))
        },
      ),
    )
  })

  test.each(['__Host-wb', '__Secure-wb_session', 'x', 'n'.repeat(300)])(
    'uses the name %s for every part',
    name => {
      const named = new SessionCookies({ sealer: seal, name })
      const lines = named.write({ origin: 'https://wb.example', cookies: null }, session(6_000), 60)
      expect(lines.length).toBeGreaterThan(1)
      expect(lines.every(line => line.startsWith(name) && line.includes('; Path=/;'))).toBe(true)
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(3_500)
      expect(named.read({ origin: 'https://wb.example', cookies: cookieHeader(lines) })).toEqual(
        session(6_000),
      )
    },
  )

  test.each([2_000, 4_000])(
    'drops a refresh token of %i characters if the session exceeds 14 KB [security rule 12]',
    chars => {
      const stored = session(9_000, chars)
      const { refreshToken: _, ...lasting } = stored
      expect(cookies.read({ origin, cookies: writeCookies(stored) })).toEqual(lasting)
    },
  )

  test('keeps the refresh token of a session of exactly 14 KB [security rule 12]', () => {
    const sizeOf = (refreshChars: number) =>
      cookieValues(
        writeCookies(session(9_000, refreshChars)).replaceAll(/wb_session(?:\.\d)?/g, 'x'),
        'x',
      ).join('').length
    expect(sizeOf(1_624)).toBeGreaterThan(14_000)
    let chars = 1_500
    while (sizeOf(chars + 1) > sizeOf(1)) chars++
    expect(sizeOf(chars)).toBeLessThanOrEqual(14 * 1024)
    expect(sizeOf(chars)).toBeGreaterThan(14 * 1024 - 4)
  })

  test('fails with session_too_large, 502, if the session is too large without its refresh token [security rule 12]', () => {
    expect(() => cookies.write({ origin, cookies: null }, session(14_000), 60)).toThrow(
      expect.objectContaining({ code: 'session_too_large', status: 502 }),
    )
    const named = new SessionCookies({ sealer: seal, name: 'n'.repeat(4_000) })
    expect(() => named.write({ origin, cookies: null }, session(10), 60)).toThrow(
      expect.objectContaining({ code: 'session_too_large' }),
    )
  })

  test('is rejected under another name, origin or secret [security rule 12]', () => {
    const header = writeCookies(session(100))
    const renamed = header.replaceAll('wb_session', 'other')
    const elsewhere = new SessionCookies({ sealer: new Sealer(['x'.repeat(32)]), name: 'wb_session' })
    expect(
      new SessionCookies({ sealer: seal, name: 'other' }).read({ origin, cookies: renamed }),
    ).toBeUndefined()
    expect(cookies.read({ origin: 'http://localhost:8788', cookies: header })).toBeUndefined()
    expect(elsewhere.read({ origin, cookies: header })).toBeUndefined()
  })

  test('is rejected with duplicate, missing, swapped, foreign or surplus parts [security rule 12]', () => {
    const pieces = writeCookies(session(9_000)).split('; ')
    const [base, one, two, three] = pieces as [string, string, string, string]
    expect(pieces.length).toBeGreaterThan(3)
    const [, foreign] = writeCookies(session(9_000)).split('; ') as [string, string]
    const headers = [
      [],
      [base],
      [one, two, three],
      pieces.slice(0, -1),
      [base, ...pieces.slice(2)],
      [...pieces, base],
      [...pieces, one],
      [...pieces, 'wb_session=', 'wb_session.1='],
      [base, foreign, ...pieces.slice(2)],
      [base, one.replace('.1=', '.2='), two.replace('.2=', '.1='), ...pieces.slice(3)],
      [...pieces, 'wb_session.4=AAAA'],
    ]
    expect(cookies.read({ origin, cookies: pieces.join('; ') })).toEqual(session(9_000))
    for (const header of headers)
      expect(
        cookies.read({ origin, cookies: header.join('; ') }),
        header.join(';').slice(0, 80),
      ).toBeUndefined()
    const [first, second] = writeCookies(session(3_000)).split('; ') as [string, string]
    const single = writeCookies(session(10))
    const recut = [single.slice(0, 60), `wb_session.1=${single.slice(60)}`]
    for (const header of [[first, second.replace('.1=', '=')], recut])
      expect(cookies.read({ origin, cookies: header.join('; ') })).toBeUndefined()
    expect(cookies.read({ origin, cookies: `${first}; ${second}` })).toEqual(session(3_000))
    expect(cookies.read({ origin, cookies: `${single}; ${single}` })).toBeUndefined()
  })

  test('S2.5-07: is rejected if it is truncated or any bit is flipped', () => {
    const header = writeCookies(session(200))
    const value = header.slice('wb_session='.length)
    for (let at = 0; at < value.length; at++) {
      expect(cookies.read({ origin, cookies: `wb_session=${value.slice(0, at)}` })).toBeUndefined()
      for (let bit = 0; bit < 8; bit++) {
        const flipped = String.fromCharCode(value.charCodeAt(at) ^ (1 << bit))
        const changed = value.slice(0, at) + flipped + value.slice(at + 1)
        // A browser or a proxy removes a `;` and trailing white space. The remaining value must be rejected too.
        if (changed.trim() !== value)
          expect(cookies.read({ origin, cookies: `wb_session=${changed}` })).toBeUndefined()
      }
    }
  })

  test('parsing accepts any header without an exception', () => {
    const odd = fc.string({ unit: fc.constantFrom(...'wb_session=;.1 v2\u0000"é') })
    fc.assert(
      fc.property(fc.oneof(fc.string(), odd), header => {
        expect(cookies.read({ origin, cookies: header })).toBeUndefined()
      }),
    )
    expect(cookies.read({ origin, cookies: null })).toBeUndefined()
  })

  test('S3-16: clearing removes the first part and every part in the request', () => {
    const header = `wb_session.3=x; other=1; ${writeCookies(session(6_000))}`
    const cleared = cookies.clear({ origin, cookies: header })
    expect(cleared).toEqual(
      ['wb_session', 'wb_session.1', 'wb_session.2', 'wb_session.3'].map(
        name => `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax`,
      ),
    )
    expect(cookies.clear({ origin, cookies: null })).toEqual([cleared[0]])
  })

  test('clears the surplus parts of a larger session', () => {
    const before = writeCookies(session(9_000))
    const lines = cookies.write({ origin, cookies: before }, session(3_000), 60)
    const names = lines.map(line => [line.slice(0, line.indexOf('=')), line.includes('Max-Age=0')])
    expect(names).toEqual([
      ['wb_session', false],
      ['wb_session.1', false],
      ['wb_session.2', true],
      ['wb_session.3', true],
    ])
  })
})

test('cookieValues returns every cookie with the given name, and no other', () => {
  const header = 'a=1; ab=2;a=3 ;a; a=;xa=4; a=b=c'
  expect(cookieValues(header, 'a')).toEqual(['1', '3', '', 'b=c'])
  expect(cookieValues(null, 'a')).toEqual([])
})
