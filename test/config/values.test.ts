import { describe, expect, test } from 'vitest'
import {
  allowedEndpoint,
  block,
  configFlag,
  cookieName,
  hasCookiePrefix,
  headerName,
  hostName,
  integer,
  ipNetwork,
  issuerUrl,
  localPath,
  oauthScope,
  publicOrigin,
  redirectUri,
  runtimeSecretRef,
  safeUrl,
  variableName,
  webUrl,
} from '../../src/config/values.ts'

const schemas = {
  webUrl: [
    webUrl,
    ['https://a.example/x?y#z', 'http://a'],
    ['ftp://a', 'a.example', 'https://u@a', 'https://:p@a', ''],
  ],
  safeUrl: [
    safeUrl,
    ['https://a.example', 'http://localhost:1', 'http://127.0.0.1'],
    ['http://a.example', 'ftp://a'],
  ],
  issuerUrl: [
    issuerUrl,
    ['https://a.example/realm'],
    ['https://a.example?x', 'https://a.example#x', 'http://a.example'],
  ],
  runtimeSecretRef: [runtimeSecretRef, ['env:KEY', 'file:/a'], ['astra-cli:default:token', 'KEY']],
  localPath: [localPath, ['/', '/a?b=c'], ['a', '//a', '/a/../b', '/a\\b', '/a b']],
  redirectUri: [
    redirectUri,
    ['/auth/callback', 'https://a.example/cb'],
    ['/cb?x', 'https://a.example/cb#x', 'https://a.example/a/../b', '//a', 'cb'],
  ],
  oauthScope: [oauthScope, ['openid', 'api://x/.default'], ['a b', '', 'a"b']],
  cookieName: [
    cookieName,
    ['wb_session', '__Host-wb', '__Secure-wb', 'a'.repeat(64)],
    ['__host-wb', '__SECURE-wb', 'a b', '', 'a'.repeat(65)],
  ],
  publicOrigin: [
    publicOrigin,
    ['https://a.example', 'http://a:8080/'],
    ['https://a.example/x', 'https://a.example?x', 'a.example'],
  ],
  hostName: [hostName, ['a.example', 'a_b-c', '127.0.0.1', '[::1]'], ['-a', 'a:80', '::1', 'a/b']],
  ipNetwork: [
    ipNetwork,
    ['10.1.2.3', '10.0.0.0/8', '10.0.0.0/32', 'fd00::/128', '::1'],
    ['10.0.0.0/33', 'fd00::/129', '10.0.0.0/8/8', '10.0.0', '10.0.0.0/', '10.0.0.0/0008', 'a/8'],
  ],
  allowedEndpoint: [
    allowedEndpoint,
    ['https://a.example/v1', 'a.example', 'a.example:8080', '10.0.0.0/8', '[::1]:11434', '[::1]'],
    ['a.example/v1', 'a:b', 'ftp://a', ''],
  ],
  headerName: [headerName, ['x-api-key'], ['x key', '', 'x:']],
  variableName: [variableName, ['WB_KEY', '_a1'], ['1A', 'A-B', '']],
} as const

describe.each(Object.entries(schemas))('%s', (_name, [schema, valid, invalid]) => {
  test.each(valid)('accepts %j', text => {
    expect(schema.safeParse(text).data).toBe(text)
  })
  test.each(invalid)('rejects %j', text => {
    expect(schema.safeParse(text).success).toBe(false)
  })
})

test.each([
  [5, 5],
  ['5', 5],
  ['-1', undefined],
  ['1', 1],
  ['10', 10],
  [0, undefined],
  [11, undefined],
  ['5.5', undefined],
  [5.5, undefined],
  ['five', undefined],
  ['', undefined],
])('an integer from 1 to 10 in the configuration: %j is %s', (value, expected) => {
  expect(integer(1, 10).safeParse(value).data).toBe(expected)
})

test.each([
  [true, true],
  ['true', true],
  [false, false],
  ['false', false],
  ['yes', undefined],
  [1, undefined],
])('a flag in the configuration: %j is %s', (value, expected) => {
  expect(configFlag.safeParse(value).data).toBe(expected)
})

test('a block without content has defaults, and rejects unknown keys', () => {
  const schema = block({ size: integer(1, 10).default(3) })
  for (const empty of [undefined, null, {}]) expect(schema.parse(empty)).toEqual({ size: 3 })
  expect(schema.safeParse({ other: 1 }).success).toBe(false)
})

test('only exact prefixes restrict a cookie', () => {
  expect(['__Host-a', '__Secure-a', '__host-a', 'a__Host-'].map(hasCookiePrefix)).toEqual([
    true,
    true,
    false,
    false,
  ])
})
