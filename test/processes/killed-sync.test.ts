import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { checkStore } from '../../src/storage/open.ts'
import { createDraw } from '../access/row-model-state.ts'
import { createSandbox } from '../commands/sandbox.ts'
import { openDatabase } from '../harness/store-file.ts'

/** About four seconds each; `WB_TEST_KILLS=100` runs a longer test. */
const kills = Number(process.env.WB_TEST_KILLS ?? 5)
const filesMax = 120
const pollMs = 2
const bin = join(import.meta.dirname, '..', '..', 'bin', 'run.js')

test('a sync that is killed leaves no partial documents, and the next one completes it', {
  timeout: 60_000 + kills * 20_000,
}, async () => {
  const { wb, env, home, dataDir } = createSandbox()
  const folder = join(home, 'docs')
  mkdirSync(folder)
  const draw = createDraw(11)
  const args = ['kb', 'sync', 'handbook', folder, '--create', '--yes', '--json', '--no-wait']
  let texts = 0
  const write = (name: string) =>
    writeFileSync(join(folder, name), `# Text ${++texts}\n\n${'The heron waits in the reeds. '.repeat(40)}\n`)
  for (let file = 0; file < filesMax; file++) write(`f${file}.md`)

  let killed = 0
  for (let round = 0; round < kills; round++) {
    const progressBefore = progressOf(dataDir)
    const child = spawn(process.execPath, [bin, ...args], { cwd: home, env, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    const progressMax = progressBefore + 1 + draw.below(60)
    while (child.exitCode === null && progressOf(dataDir) < progressMax) await pause(pollMs)
    child.kill('SIGKILL')
    const [status] = await ended
    if (status === null) killed++

    const store = await checkStore({ driver: 'sqlite', path: join(dataDir, 'workbase.db') })
    expect(store?.checks.filter(({ count }) => count > 0) ?? []).toEqual([])
    for (let change = 0; change < 40; change++) {
      const all = readdirSync(folder)
      const name = `f${draw.below(2 * filesMax)}.md`
      if (draw.chance(0.4)) write(name)
      else if (draw.chance(0.5)) renameSync(join(folder, draw.pick(all)), join(folder, name))
      else rmSync(join(folder, draw.pick(all)))
    }
  }
  expect(killed).toBeGreaterThan(kills / 2)

  const last = await wb(args)
  expect(last.status, last.stderr).toBe(0)
  expect(JSON.parse((await wb(args)).stdout)).toMatchObject({ added: 0, changed: 0, renamed: 0, deleted: 0 })
  const { stdout } = await wb(['documents', 'list', 'handbook', '--json'])
  const stored = JSON.parse(stdout) as {
    sourceFilename: string
    status: string
    metadata: { title: string }
  }[]
  expect(new Set(stored.map(({ status }) => status))).toEqual(new Set(['ready']))
  const titleOf = (name: string) => /^# (.*)/.exec(readFileSync(join(folder, name), 'utf8'))![1]!
  expect(stored.map(({ sourceFilename, metadata }) => `${sourceFilename} ${metadata.title}`).sort()).toEqual(
    readdirSync(folder)
      .map(name => `${name} ${titleOf(name)}`)
      .sort(),
  )
})

/** Returns a number that increases with each change of a document; 0 without a store. */
function progressOf(dataDir: string): number {
  const path = join(dataDir, 'workbase.db')
  if (!existsSync(path)) return 0
  const database = openDatabase(path, { readonly: true })
  try {
    const numbers = [
      'max(ordinal) FROM documents',
      'sum(version) FROM documents',
      'count(*) FROM deleted_documents',
    ]
    const sum = numbers.map(number => `coalesce((SELECT ${number}), 0)`).join(' + ')
    return Number(database.prepare(`SELECT ${sum}`).pluck().get())
  } catch {
    // The schema does not exist yet.
    return 0
  } finally {
    database.close()
  }
}
