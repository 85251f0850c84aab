import { expect, onTestFinished, test } from 'vitest'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'

test('a read that fails and ends its transaction reports its own error', () => {
  const connection = new SqliteConnection(':memory:')
  onTestFinished(() => connection.close())
  const read = () => {
    connection.rollback()
    throw new Error('disk I/O error')
  }
  expect(() => connection.snapshot(read)).toThrow('disk I/O error')
  expect(connection.snapshot(() => 'read')).toBe('read')
})
