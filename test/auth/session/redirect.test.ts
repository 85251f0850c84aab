import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { safeRedirectPath } from '../../../src/auth/session/safe-redirect.ts'

const origins = ['http://localhost:8787', 'https://wb.example', 'http://[::1]:8787']

describe('redirect after sign-in', () => {
  test.each([
    '/',
    '/workspaces/1/kb?q=a%20b&x=1#top',
    "/AZaz09-._~!$&'()*+,;=:@%/?#",
    '/a//b',
    '/a?next=//evil.example',
    '/a?next=https://evil.example/',
    '/a%2Fb%2f%2Fc',
    '/%',
    '/%zz%E3%81%82',
    '/100%25',
    '/.hidden/..x',
    '/:8080',
    '/@evil.example',
    '/a?q=%2525',
  ])('S5.7-09: keeps %j', target => expect(safeRedirectPath(target)).toBe(target))

  test.each([
    undefined,
    '',
    'a',
    '?a=1',
    '#a',
    'https://evil.example',
    'HTTPS://evil.example/',
    'http:evil.example',
    'javascript:alert(1)',
    'data:text/html,x',
    'mailto:a@b.c',
    ' /a',
    '/ a',
    '/ä',
    '/a"b',
    '/<script>',
    '/a|b',
    '/a^b',
    '/`',
    '/{a}',
  ])('S5.7-09 S5.7-10: replaces %j by /', target => expect(safeRedirectPath(target)).toBe('/'))

  test.each([
    '//evil.example',
    '///evil.example',
    '//',
    '////evil.example/%2f..',
    '/\\evil.example',
    '\\\\evil.example',
    '/\\/evil.example',
    '/\t/evil.example',
    '/\n/evil.example',
    '/\r/evil.example',
    '\t//evil.example',
    '/\u0000/evil.example',
    '/a\r\nSet-Cookie: x=1',
    '/%2f%2fevil.example',
    '/%2F/evil.example',
    '/%2fevil.example',
    '/%5cevil.example',
    '/%5C%5Cevil.example',
    '/a%5c..%5cb',
    '/%09/evil.example',
    '/%0a/evil.example',
    '/%0d%0aLocation:%20https://evil.example',
    '/%00',
    '/%7f',
    '/%252f%252fevil.example',
    '/%25252fevil.example',
    '/%255cevil.example',
    '/.//evil.example',
    '/..//evil.example',
    '/%2e//evil.example',
    '/%2e%2e//evil.example',
    '/a/..//evil.example',
    '/./%2fevil.example',
    `/${'%25'.repeat(1)}${'25'.repeat(12)}2fevil.example`,
    `/${'a'.repeat(5_000)}`,
  ])('S5.7-11: replaces %j by / [security rule 12]', target => expect(safeRedirectPath(target)).toBe('/'))

  test('S5.7-09 S5.7-11: never leaves the site for any input, even after it is decoded', () => {
    const piece = fc.constantFrom(
      '/',
      '\\',
      '//',
      '.',
      '..',
      '%2f',
      '%5C',
      '%2e',
      '%25',
      '25',
      '2f',
      '5c',
      '%09',
      '\t',
      '\n',
      '@',
      ':',
      '?',
      '#',
      'evil.example',
      'http:',
      'a',
      '%',
      '%0d%0a',
    )
    const hostile = fc.array(piece, { maxLength: 12 }).map(pieces => `/${pieces.join('')}`)
    fc.assert(
      fc.property(fc.oneof(hostile, fc.string(), fc.webUrl()), wanted => {
        const target = safeRedirectPath(wanted)
        expect(target === '/' || target === wanted).toBe(true)
        for (const origin of origins) {
          expect(new URL(target, origin).origin).toBe(origin)
          const path = target.replace(/[?#].*$/, '')
          const decoded = path.replace(/%25/g, '%').replace(/%2f/gi, '/').replace(/%5c/gi, '\\')
          expect(new URL(decoded, origin).origin).toBe(origin)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
