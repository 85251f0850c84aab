import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { readProfiles } from '../../src/cli/settings/profiles.ts'
import { readDecisions } from '../../src/cli/trust/decisions.ts'
import { scratchTree } from '../cli/scratch-tree.ts'
import { programPath } from '../harness/program.ts'

const commands = ['a', 'b', 'c', 'd']
const times = 25

async function changing(settingsDir: string, name: string): Promise<ChildProcess> {
  const child = fork(programPath('change-settings'), [settingsDir, name, String(times)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

test('concurrent commands that change profiles and trusted folders lose no changes', async () => {
  const settingsDir = scratchTree({})
  const children = await Promise.all(commands.map(name => changing(settingsDir, name)))
  await Promise.all(
    children.map(child => {
      child.send('go')
      return once(child, 'message')
    }),
  )
  const { default: _, ...profiles } = readProfiles(settingsDir).profiles
  const expected = commands.flatMap(name => Array.from({ length: times }, (_, time) => [name, time]))
  expect(Object.keys(profiles).sort()).toEqual(expected.map(([name, time]) => `${name}-${time}`).sort())
  expect(Object.keys(readDecisions(settingsDir)).sort()).toEqual(
    expected.map(([name, time]) => `/${name}/${time}`).sort(),
  )
})
