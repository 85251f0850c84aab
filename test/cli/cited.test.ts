import { expect, test } from 'vitest'
import { citationsOf } from '../../src/cli/chat/citations.ts'

const sound = {
  number: 1,
  knowledgeBaseId: '00000000-0000-4000-8000-000000000001',
  attachmentId: null,
  documentId: null,
  chunkId: 'c',
  chunkIndex: 0,
  title: 'Laws',
  sourceFilename: null,
  page: 2,
}

test('does not show citation fields of another type, such as escape sequences in place of a page', () => {
  const forged = [{ ...sound, page: '\x1b]0;planted\x07' }, { ...sound, title: {} }, null, sound]
  expect(citationsOf({ metadata: { citations: JSON.stringify(forged) } })).toEqual([sound])
})

test('reads a citation of an earlier version, without an attachment', () => {
  const { attachmentId: _, ...earlier } = sound
  expect(citationsOf({ metadata: { citations: JSON.stringify([earlier]) } })).toEqual([sound])
})
