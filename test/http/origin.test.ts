import { describe, expect, test } from 'vitest'
import { type Arrival, type OriginRules, originRule } from '../../src/http/origin.ts'

const local: OriginRules = {
  loopback: true,
  anonymousPasses: true,
  publicOrigin: null,
  allowedHosts: [],
  allowedOrigins: [],
  machineName: 'workstation.corp.example',
}
const get: Arrival = {
  method: 'GET',
  path: '/api/v1/workspaces',
  encrypted: false,
  host: '127.0.0.1:8787',
  origin: null,
  fetchSite: null,
  authorization: null,
  cookie: null,
}
const refused = (rules: Partial<OriginRules>, arrival: Partial<Arrival>) =>
  originRule({ ...local, ...rules })({ ...get, ...arrival })

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
    expect(refused({ loopback: false, anonymousPasses: false }, { host: 'evil.example' })).toBeUndefined()
    expect(refused({ loopback: true, anonymousPasses: false }, { host: 'evil.example' })).toBeDefined()
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
    expect(refused({ loopback: false, anonymousPasses: false }, { ...post, ...arrival })).toBeDefined()
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
})
