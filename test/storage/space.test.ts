import { statSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { createCollection, key, recordWithText, upsert } from './content-data.ts'
import { scratchPath } from './scratch.ts'

const RECORDS = 500

test('deleted content frees space that new content uses, so that the file does not grow', async () => {
  const path = scratchPath()
  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  const state = new SqliteConnection(path)
  onTestFinished(() => state.close())
  const fileBytes = () => {
    state.truncateLog()
    return statSync(path).size
  }
  const texts = Array.from({ length: RECORDS }, (_, n) =>
    recordWithText(`r${n}`, `${`word${n} `.repeat(40)}apple`, { documentId: 'd' }),
  )
  await content.write([createCollection(), upsert(...texts)], [])
  const before = fileBytes()
  for (let round = 0; round < 5; round++) {
    await content.write([{ op: 'deleteDocument', ...key, documentId: 'd' }], [])
    await content.write([upsert(...texts)], [])
  }
  expect(fileBytes()).toBeLessThan(2 * before)
})
