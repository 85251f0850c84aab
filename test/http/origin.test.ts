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
const refused = (rules: Partial<OriginRuleSettings>, arrival: Partial<OriginFacts>) =>
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
  ])('%s passes on loopback', host => {
    expect(refused({}, { host })).toBeUndefined()
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
  ])('a rebound or broken name %s is refused on loopback', host => {
    expect(refused({}, { host })).toMatchObject({ code: 'forbidden_origin', status: 403 })
  })

  test('a rebound name is refused although it sends a bearer token and its own origin', () => {
    const attack = {
      host: 'evil.example',
      origin: 'http://evil.example',
      authorization: 'Bearer x',
      method: 'POST',
    }
    expect(refused({}, attack)).toMatchObject({ code: 'forbidden_origin' })
  })

  test('the hint is the line that lets the name in, and that line does', () => {
    expect(refused({}, { host: 'wb.corp.example:8787' })!.hint).toContain(
      'runtime.allowedHosts: ["wb.corp.example"]',
    )
    expect(refused({ allowedHosts: ['wb.corp.example'] }, { host: 'WB.corp.example:8787' })).toBeUndefined()
    expect(refused({ publicOrigin: 'https://wb.corp.example' }, { host: 'wb.corp.example' })).toBeUndefined()
  })

  test.each(['/healthz', '/readyz', '/version'])('%s answers any Host', path => {
    expect(refused({}, { path, host: 'evil.example' })).toBeUndefined()
  })

  test('a name without a dot passes only beyond loopback', () => {
    expect(refused({ loopback: false }, { host: 'workbase:8787' })).toBeUndefined()
    expect(refused({ loopback: false }, { host: 'work.base:8787' })).toMatchObject({
      code: 'forbidden_origin',
    })
  })

  test('beyond loopback with sign-in required, any Host passes', () => {
    expect(refused({ loopback: false, acceptsAnonymous: false }, { host: 'evil.example' })).toBeUndefined()
    expect(refused({ loopback: true, acceptsAnonymous: false }, { host: 'evil.example' })).toBeDefined()
  })
})

describe('Origin of a change', () => {
  const post = { method: 'POST', host: 'localhost:8787' }

  test.each([
    ['a command line', {}],
    ['the own origin', { origin: 'http://localhost:8787' }],
    ['a page of the own origin', { fetchSite: 'same-origin' }],
    ['a person who typed the address', { fetchSite: 'none' }],
    [
      'a page elsewhere that holds a token',
      { origin: 'https://evil.example', authorization: 'Bearer wb_live_x' },
    ],
    ['a read from elsewhere', { method: 'GET', origin: 'https://evil.example', fetchSite: 'cross-site' }],
  ])('%s passes', (_who, arrival) => {
    expect(refused({}, { ...post, ...arrival })).toBeUndefined()
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
  ])('%s is refused', (_who, arrival) => {
    expect(refused({}, { ...post, ...arrival })).toMatchObject({ code: 'forbidden_origin', status: 403 })
    expect(refused({ loopback: false, acceptsAnonymous: false }, { ...post, ...arrival })).toBeDefined()
  })

  test('default ports and letter case do not matter', () => {
    expect(refused({}, { ...post, host: 'LOCALHOST:80', origin: 'http://localhost' })).toBeUndefined()
    expect(
      refused({}, { ...post, host: 'localhost', encrypted: true, origin: 'https://localhost:443' }),
    ).toBeUndefined()
  })

  test('publicOrigin and allowedOrigins pass, and the hint names the latter', () => {
    const asked = { ...post, origin: 'https://app.corp.example', fetchSite: 'cross-site' }
    expect(refused({}, asked)!.hint).toContain('runtime.allowedOrigins: ["https://app.corp.example"]')
    expect(refused({ allowedOrigins: ['https://app.corp.example'] }, asked)).toBeUndefined()
    expect(refused({ publicOrigin: 'https://app.corp.example/' }, asked)).toBeUndefined()
  })

  describe('where a browser says so by Referer alone', () => {
    test.each([
      ['a page of this runtime', { referer: 'http://localhost:8787/ui/keys?x=1' }],
      ['the same with a cookie', { referer: 'http://localhost:8787/', cookie: 'wb_session=x' }],
    ])('%s passes', (_who, arrival) => {
      expect(refused({}, { ...post, ...arrival })).toBeUndefined()
    })

    test.each([
      ['another page', { referer: 'https://evil.example/http://localhost:8787/' }],
      ['another page with a cookie', { referer: 'https://evil.example/', cookie: 'wb_session=x' }],
      ['no page', { referer: 'about:blank' }],
      ['an empty one', { referer: '' }],
      ['a path', { referer: '/ui' }],
      ['user information that looks like us', { referer: 'http://localhost:8787@evil.example/' }],
    ])('%s is refused', (_who, arrival) => {
      expect(refused({}, { ...post, ...arrival })).toMatchObject({ code: 'forbidden_origin' })
    })

    test('what else was said counts more', () => {
      const own = 'http://localhost:8787/'
      expect(refused({}, { ...post, referer: own, origin: 'https://evil.example' })).toBeDefined()
      expect(refused({}, { ...post, referer: own, origin: 'null' })).toBeDefined()
      expect(refused({}, { ...post, referer: own, fetchSite: 'cross-site' })).toBeDefined()
      expect(
        refused({}, { ...post, referer: 'https://evil.example/', fetchSite: 'same-origin' }),
      ).toBeUndefined()
    })
  })

  test('S7.3-11: with publicOrigin, a matching Origin or Referer passes and another is refused, in every mode', () => {
    for (const rules of [{}, { loopback: false, acceptsAnonymous: false }, { browserLogin: true }]) {
      const configured = { ...rules, publicOrigin: 'https://wb.corp.example/' }
      for (const cookie of [null, 'wb_session=x']) {
        const asked = { ...post, cookie }
        expect(refused(configured, { ...asked, origin: 'https://wb.corp.example' })).toBeUndefined()
        expect(refused(configured, { ...asked, referer: 'https://wb.corp.example/ui' })).toBeUndefined()
        for (const other of [
          'https://wb.corp.example:8443',
          'http://wb.corp.example',
          'https://evil.example',
        ])
          for (const claimed of [{ origin: other }, { referer: `${other}/` }])
            expect(refused(configured, { ...asked, ...claimed }), other).toMatchObject({
              code: 'forbidden_origin',
            })
      }
    }
  })

  test('S7.3-forbidden_origin: with browser login, a session acts for pages of publicOrigin alone', () => {
    const rules = { browserLogin: true, publicOrigin: 'https://wb.corp.example' }
    const borne = { ...post, cookie: 'wb_session=x' }
    expect(refused(rules, borne)).toMatchObject({ code: 'forbidden_origin' })
    expect(refused(rules, { ...borne, origin: 'http://localhost:8787' })).toBeDefined()
    expect(refused(rules, { ...borne, origin: 'https://wb.corp.example' })).toBeUndefined()
    expect(
      refused(
        { ...rules, allowedOrigins: ['http://localhost:8787'] },
        { ...borne, origin: 'http://localhost:8787' },
      ),
    ).toBeUndefined()
    // Without a cookie, or a sign-in, there is no session to act with.
    expect(
      refused({ ...rules, browserLogin: false }, { ...borne, origin: 'http://localhost:8787' }),
    ).toBeUndefined()
    expect(refused(rules, { ...post, origin: 'http://localhost:8787' })).toBeUndefined()
    expect(
      refused({ ...rules, publicOrigin: null }, { ...borne, origin: 'http://localhost:8787' }),
    ).toBeUndefined()
  })

  test('csrfOriginCheck: false lets every origin in, and no other Host', () => {
    const rules = { csrfOriginCheck: false }
    for (const arrival of [{ origin: 'https://evil.example' }, { cookie: 'x' }, { fetchSite: 'cross-site' }])
      expect(refused(rules, { ...post, ...arrival })).toBeUndefined()
    expect(refused(rules, { ...post, host: 'evil.example' })).toMatchObject({ code: 'forbidden_origin' })
  })

  test('the own origin is the one that a trusted proxy tells of', () => {
    const rule = createOriginRule<OriginFacts>(local, () => ({ encrypted: true, host: 'wb.corp.example' }))
    const asked = (origin: string) => rule({ ...get, ...post, origin })
    expect(asked('https://wb.corp.example')).toBeUndefined()
    expect(asked('https://wb.corp.example:443')).toBeUndefined()
    expect(asked('http://wb.corp.example')).toBeDefined()
    expect(asked('http://localhost:8787')).toBeDefined()
  })

  test('a refusal says why, and repeats of what a page sent no more than an origin', () => {
    const why = (arrival: Partial<OriginFacts>) => refused({}, { ...post, ...arrival })!.facts.crossOrigin
    expect(why({ origin: 'https://evil.example' })).toBe('the Origin is https://evil.example')
    expect(why({ origin: 'wb_live_canary' })).toBe('the Origin is none')
    expect(why({ referer: 'https://evil.example/?token=canary' })).toBe(
      'the origin of the Referer is https://evil.example',
    )
    expect(why({ referer: 'canary' })).toBe('the origin of the Referer is none')
    expect(why({ fetchSite: 'canary' })).toBe('Sec-Fetch-Site shows another site')
    expect(why({ cookie: 'canary' })).toBe('the request has a cookie, but no Origin or Referer')
    expect(refused({}, { host: 'evil.example' })!.facts.crossOrigin).toBeUndefined()
  })
})
