import { describe, expect, test } from 'vitest'
import { createOriginRule, type OriginFacts, type OriginRuleSettings } from '../../src/http/origin-rule.ts'

const local: OriginRuleSettings = {
  loopback: true,
  acceptsAnonymous: true,
  publicOrigin: null,
  allowedHosts: [],
  allowedOrigins: [],
  machineName: 'workstation.corp.example',
  csrfOriginCheck: true,
  browserLogin: false,
}
const get: OriginFacts = {
  method: 'GET',
  path: '/api/v1/workspaces',
  encrypted: false,
  host: '127.0.0.1:8787',
  origin: null,
  fetchSite: null,
  referer: null,
  authorization: null,
  cookie: null,
}
const denialOf = (rules: Partial<OriginRuleSettings>, arrival: Partial<OriginFacts>) =>
  createOriginRule({ ...local, ...rules }, reached => reached)({ ...get, ...arrival })

describe('Host', () => {
  test.each([
    '127.0.0.1:8787',
    '127.0.0.1',
    '10.1.2.3:80',
    '[::1]:8787',
    '[fe80::1]',
    'localhost:8787',
    'LOCALHOST',
    'localhost.:8787',
    'wb.localhost:8787',
    'workstation.corp.example:8787',
  ])('accepts %s on loopback', host => {
    expect(denialOf({}, { host })).toBeUndefined()
  })

  test.each([
    'evil.example:8787',
    'localhost.evil.example',
    'evil-localhost',
    '127.0.0.1.evil.example',
    'workbase',
    '',
    null,
    'a b',
    'localhost@evil.example',
    'localhost,evil.example',
    '[::1',
  ])('rejects the rebound or malformed name %s on loopback', host => {
    expect(denialOf({}, { host })).toMatchObject({ code: 'forbidden_origin', status: 403 })
  })

  test('rejects a rebound name even with a bearer token and a matching origin', () => {
    const attack = {
      host: 'evil.example',
      origin: 'http://evil.example',
      authorization: 'Bearer x',
      method: 'POST',
    }
    expect(denialOf({}, attack)).toMatchObject({ code: 'forbidden_origin' })
  })

  test('the hint contains the setting that allows the name', () => {
    expect(denialOf({}, { host: 'wb.corp.example:8787' })!.hint).toContain(
      'runtime.allowedHosts: ["wb.corp.example"]',
    )
    expect(denialOf({ allowedHosts: ['wb.corp.example'] }, { host: 'WB.corp.example:8787' })).toBeUndefined()
    expect(denialOf({ publicOrigin: 'https://wb.corp.example' }, { host: 'wb.corp.example' })).toBeUndefined()
  })

  test.each(['/healthz', '/readyz', '/version'])('%s accepts any Host', path => {
    expect(denialOf({}, { path, host: 'evil.example' })).toBeUndefined()
  })

  test('accepts a name without a dot only beyond loopback', () => {
    expect(denialOf({ loopback: false }, { host: 'workbase:8787' })).toBeUndefined()
    expect(denialOf({ loopback: false }, { host: 'work.base:8787' })).toMatchObject({
      code: 'forbidden_origin',
    })
  })

  test('accepts any Host beyond loopback if sign-in is required', () => {
    expect(denialOf({ loopback: false, acceptsAnonymous: false }, { host: 'evil.example' })).toBeUndefined()
    expect(denialOf({ loopback: true, acceptsAnonymous: false }, { host: 'evil.example' })).toBeDefined()
  })
})

describe('the Origin of a request that changes data', () => {
  const post = { method: 'POST', host: 'localhost:8787' }

  test.each([
    ['a command line', {}],
    ['the same origin', { origin: 'http://localhost:8787' }],
    ['a page of the same origin', { fetchSite: 'same-origin' }],
    ['an address typed by the user', { fetchSite: 'none' }],
    ['another page with a token', { origin: 'https://evil.example', authorization: 'Bearer wb_live_x' }],
    ['a cross-site read', { method: 'GET', origin: 'https://evil.example', fetchSite: 'cross-site' }],
  ])('accepts %s', (_who, arrival) => {
    expect(denialOf({}, { ...post, ...arrival })).toBeUndefined()
  })

  test.each([
    ['another origin', { origin: 'https://evil.example' }],
    ['another port', { origin: 'http://localhost:3000' }],
    ['another scheme', { origin: 'https://localhost:8787' }],
    ['a sandboxed page', { origin: 'null' }],
    ['no origin at all', { origin: '' }],
    ['a cross-site form', { fetchSite: 'cross-site' }],
    ['a same-site form', { fetchSite: 'same-site' }],
    ['a cookie without an origin', { cookie: 'wb_session=x' }],
    ['a basic credential', { origin: 'https://evil.example', authorization: 'Basic eDp5' }],
    ['a delete', { method: 'DELETE', origin: 'https://evil.example' }],
    ['an unknown method', { method: 'PURGE', origin: 'https://evil.example' }],
  ])('rejects %s', (_who, arrival) => {
    expect(denialOf({}, { ...post, ...arrival })).toMatchObject({ code: 'forbidden_origin', status: 403 })
    expect(denialOf({ loopback: false, acceptsAnonymous: false }, { ...post, ...arrival })).toBeDefined()
  })

  test('ignores default ports and letter case', () => {
    expect(denialOf({}, { ...post, host: 'LOCALHOST:80', origin: 'http://localhost' })).toBeUndefined()
    expect(
      denialOf({}, { ...post, host: 'localhost', encrypted: true, origin: 'https://localhost:443' }),
    ).toBeUndefined()
  })

  test('accepts publicOrigin and allowedOrigins, and the hint names allowedOrigins', () => {
    const arrival = { ...post, origin: 'https://app.corp.example', fetchSite: 'cross-site' }
    expect(denialOf({}, arrival)!.hint).toContain('runtime.allowedOrigins: ["https://app.corp.example"]')
    expect(denialOf({ allowedOrigins: ['https://app.corp.example'] }, arrival)).toBeUndefined()
    expect(denialOf({ publicOrigin: 'https://app.corp.example/' }, arrival)).toBeUndefined()
  })

  describe('a request with only a Referer', () => {
    test.each([
      ['a page of this runtime', { referer: 'http://localhost:8787/ui/keys?x=1' }],
      ['a page of this runtime with a cookie', { referer: 'http://localhost:8787/', cookie: 'wb_session=x' }],
    ])('accepts %s', (_who, arrival) => {
      expect(denialOf({}, { ...post, ...arrival })).toBeUndefined()
    })

    test.each([
      ['another page', { referer: 'https://evil.example/http://localhost:8787/' }],
      ['another page with a cookie', { referer: 'https://evil.example/', cookie: 'wb_session=x' }],
      ['no page', { referer: 'about:blank' }],
      ['an empty Referer', { referer: '' }],
      ['a path', { referer: '/ui' }],
      ['user information that looks like this runtime', { referer: 'http://localhost:8787@evil.example/' }],
    ])('rejects %s', (_who, arrival) => {
      expect(denialOf({}, { ...post, ...arrival })).toMatchObject({ code: 'forbidden_origin' })
    })

    test('other headers take precedence', () => {
      const ownPage = 'http://localhost:8787/'
      expect(denialOf({}, { ...post, referer: ownPage, origin: 'https://evil.example' })).toBeDefined()
      expect(denialOf({}, { ...post, referer: ownPage, origin: 'null' })).toBeDefined()
      expect(denialOf({}, { ...post, referer: ownPage, fetchSite: 'cross-site' })).toBeDefined()
      expect(
        denialOf({}, { ...post, referer: 'https://evil.example/', fetchSite: 'same-origin' }),
      ).toBeUndefined()
    })
  })

  test('S7.3-11: accepts a matching Origin or Referer with publicOrigin and rejects others, in every mode', () => {
    for (const rules of [{}, { loopback: false, acceptsAnonymous: false }, { browserLogin: true }]) {
      const configured = { ...rules, publicOrigin: 'https://wb.corp.example/' }
      for (const cookie of [null, 'wb_session=x']) {
        const request = { ...post, cookie }
        expect(denialOf(configured, { ...request, origin: 'https://wb.corp.example' })).toBeUndefined()
        expect(denialOf(configured, { ...request, referer: 'https://wb.corp.example/ui' })).toBeUndefined()
        for (const other of [
          'https://wb.corp.example:8443',
          'http://wb.corp.example',
          'https://evil.example',
        ])
          for (const claimed of [{ origin: other }, { referer: `${other}/` }])
            expect(denialOf(configured, { ...request, ...claimed }), other).toMatchObject({
              code: 'forbidden_origin',
            })
      }
    }
  })

  test('S7.3-forbidden_origin: with browser sign-in, a session works only for pages of publicOrigin', () => {
    const rules = { browserLogin: true, publicOrigin: 'https://wb.corp.example' }
    const borne = { ...post, cookie: 'wb_session=x' }
    expect(denialOf(rules, borne)).toMatchObject({ code: 'forbidden_origin' })
    expect(denialOf(rules, { ...borne, origin: 'http://localhost:8787' })).toBeDefined()
    expect(denialOf(rules, { ...borne, origin: 'https://wb.corp.example' })).toBeUndefined()
    expect(
      denialOf(
        { ...rules, allowedOrigins: ['http://localhost:8787'] },
        { ...borne, origin: 'http://localhost:8787' },
      ),
    ).toBeUndefined()
    // Without a cookie or browser sign-in, there is no session that a page could use.
    expect(
      denialOf({ ...rules, browserLogin: false }, { ...borne, origin: 'http://localhost:8787' }),
    ).toBeUndefined()
    expect(denialOf(rules, { ...post, origin: 'http://localhost:8787' })).toBeUndefined()
    expect(
      denialOf({ ...rules, publicOrigin: null }, { ...borne, origin: 'http://localhost:8787' }),
    ).toBeUndefined()
  })

  test('csrfOriginCheck: false accepts every origin, but no other Host', () => {
    const rules = { csrfOriginCheck: false }
    for (const arrival of [{ origin: 'https://evil.example' }, { cookie: 'x' }, { fetchSite: 'cross-site' }])
      expect(denialOf(rules, { ...post, ...arrival })).toBeUndefined()
    expect(denialOf(rules, { ...post, host: 'evil.example' })).toMatchObject({ code: 'forbidden_origin' })
  })

  test('uses the origin that a trusted proxy reports', () => {
    const rule = createOriginRule<OriginFacts>(local, () => ({ encrypted: true, host: 'wb.corp.example' }))
    const check = (origin: string) => rule({ ...get, ...post, origin })
    expect(check('https://wb.corp.example')).toBeUndefined()
    expect(check('https://wb.corp.example:443')).toBeUndefined()
    expect(check('http://wb.corp.example')).toBeDefined()
    expect(check('http://localhost:8787')).toBeDefined()
  })

  test('an error includes the reason, and at most the origin of what a page sent', () => {
    const why = (arrival: Partial<OriginFacts>) => denialOf({}, { ...post, ...arrival })!.facts.crossOrigin
    expect(why({ origin: 'https://evil.example' })).toBe('the Origin is https://evil.example')
    expect(why({ origin: 'wb_live_canary' })).toBe('the Origin is none')
    expect(why({ referer: 'https://evil.example/?token=canary' })).toBe(
      'the origin of the Referer is https://evil.example',
    )
    expect(why({ referer: 'canary' })).toBe('the origin of the Referer is none')
    expect(why({ fetchSite: 'canary' })).toBe('Sec-Fetch-Site shows another site')
    expect(why({ cookie: 'canary' })).toBe('the request has a cookie, but no Origin or Referer')
    expect(denialOf({}, { host: 'evil.example' })!.facts.crossOrigin).toBeUndefined()
  })
})
