import fc from 'fast-check'
import { expect, test } from 'vitest'
import { JsonEndDetector } from '../../../src/models/chat/json-end-detector.ts'

test('the end of an object is detected exactly at its last brace', () => {
  const values = fc.dictionary(fc.string(), fc.jsonValue())
  fc.assert(
    fc.property(values, value => {
      const end = new JsonEndDetector()
      const text = JSON.stringify(value)
      for (const character of text.slice(0, -1)) {
        end.read(character)
        expect(end.isAtEnd).toBe(false)
      }
      end.read('}')
      expect(end.isAtEnd).toBe(true)
      end.read(' \n')
      expect(end.isAtEnd).toBe(true)
      end.read('x')
      expect(end.isAtEnd).toBe(false)
    }),
  )
})
