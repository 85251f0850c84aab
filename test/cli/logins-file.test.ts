import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { findLogin, listLogins } from '../../src/cli/credentials/logins.ts'
import type { Profile } from '../../src/cli/settings/profile.ts'
import { scratchTree } from './scratch-tree.ts'

const url = 'http://127.0.0.1:8787'
const sound = {
  kind: 'key',
  driver: 'file',
  account: `${url} 0123456789abcdef`,
  who: 'me',
  storedAt: '2026-01-01',
}

test.each([
  ['a null profile', { default: null }],
  ['a number as a profile', { default: 5 }],
  ['a null login', { default: { [url]: null } }],
  ['an account that is not a string', { default: { [url]: { account: 7 } } }],
])('ignores %s in logins.json, and keeps the other logins', (_what, content) => {
  const settingsDir = scratchTree({})
  const path = join(settingsDir, 'logins.json')
  writeFileSync(path, JSON.stringify({ ...content, other: { [url]: sound } }), { mode: 0o600 })
  const profile = (name: string) => ({ settingsDir, name, url }) as unknown as Profile
  expect(findLogin(profile('default'))).toBeUndefined()
  expect(findLogin(profile('other'))).toMatchObject(sound)
  expect(listLogins(settingsDir)).toEqual([{ ...sound, profile: 'other', runtime: url }])
})
