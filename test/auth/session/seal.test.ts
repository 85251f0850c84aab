import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Sealer } from '../../../src/auth/session/sealer.ts'

const first = 'first-session-secret-of-32-bytes-or-more'
const second = 'second-session-secret-of-32-bytes-or-more'
const seal = new Sealer([first])

describe('sealed values', () => {
  test('S2.5-06: have the form v2.<iv>.<ciphertext>.<tag>, base64url without padding, with 12 and 16 bytes', () => {
    const [version, iv, ciphertext, tag, ...rest] = seal.seal('p', 'text of 16 bytes').split('.')
    expect(version).toBe('v2')
    expect(Buffer.from(iv!, 'base64url')).toHaveLength(12)
    expect(Buffer.from(ciphertext!, 'base64url')).toHaveLength(16)
    expect(Buffer.from(tag!, 'base64url')).toHaveLength(16)
    expect(rest).toEqual([])
    expect([iv, ciphertext, tag].join('')).toMatch(/^[A-Za-z0-9_-]+$/)
  })

  test('open to any original text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, purpose) => {
        expect(seal.open(purpose, seal.seal(purpose, text))).toBe(text)
      }),
    )
  })

  test('S2.5-07: differ each time, and do not show the text', () => {
    const value = seal.seal('p', 'a-very-visible-text')
    expect(seal.seal('p', 'a-very-visible-text')).not.toBe(value)
    expect(Buffer.from(value.split('.')[2]!, 'base64url').toString('latin1')).not.toContain('visible')
  })

  test('S2.5-07: open only for their purpose', () => {
    const value = seal.seal('purpose', 'text')
    expect(seal.open('purpos', value)).toBeUndefined()
    expect(seal.open('', value)).toBeUndefined()
  })

  test('S2.5-07: do not open if any character is replaced by any other', () => {
    const value = seal.seal('p', 'a text that takes 3 blocks, no less than 33')
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \u0000é'
    for (let at = 0; at < value.length; at++)
      for (const other of alphabet) {
        if (other === value[at]) continue
        const changed = value.slice(0, at) + other + value.slice(at + 1)
        expect(seal.open('p', changed), changed).toBeUndefined()
      }
  })

  test('S2.5-07: do not open if they are shortened or extended at any position', () => {
    const value = seal.seal('p', 'some text')
    for (let at = 0; at < value.length; at++) {
      expect(seal.open('p', value.slice(0, at))).toBeUndefined()
      expect(seal.open('p', value.slice(at + 1))).toBeUndefined()
      expect(seal.open('p', value.slice(0, at) + value.slice(at + 1))).toBeUndefined()
      expect(seal.open('p', `${value.slice(0, at)}A${value.slice(at)}`)).toBeUndefined()
    }
  })

  test('S2.5-07: never throw for any text', () => {
    const part = fc.string({ unit: fc.constantFrom(...'Aa0-_.=v2') })
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          part,
          part.map(text => `v2.${text}`),
        ),
        text => {
          expect(seal.open('p', text)).toBeUndefined()
        },
      ),
    )
  })

  test('S5.9-10: are created with the first secret, and open with all of them', () => {
    const old = new Sealer([first]).seal('p', 'text')
    const rotated = new Sealer([second, first])
    expect(rotated.open('p', old)).toBe('text')
    expect(new Sealer([second]).open('p', rotated.seal('p', 'new'))).toBe('new')
    expect(new Sealer([first]).open('p', rotated.seal('p', 'new'))).toBeUndefined()
  })

  test('S5.7-24: do not open with another secret', () => {
    expect(new Sealer([second]).open('p', seal.seal('p', 'text'))).toBeUndefined()
  })

  test('S2.2-33: use a random key for each sealer without a secret', () => {
    const [one, other] = [new Sealer([]), new Sealer([])]
    const value = one.seal('p', 'text')
    expect(one.open('p', value)).toBe('text')
    expect(other.open('p', value)).toBeUndefined()
  })
})
