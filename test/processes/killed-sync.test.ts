import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { checkStore } from '../../src/storage/open.ts'
import { createDraw } from '../access/row-model-state.ts'
import { createSandbox } from '../commands/sandbox.ts'

/** About four seconds each; `WB_TEST_KILLS=100` runs a longer test. */
const kills = Number(process.env.WB_TEST_KILLS ?? 5)
const filesMax = 120
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
    const child = spawn(process.execPath, [bin, ...args], { cwd: home, env, stdio: 'ignore' })
    onTestFinished(() => void child.kill('SIGKILL'))
    const ended = once(child, 'exit')
    const timer = setTimeout(() => child.kill('SIGKILL'), 400 + draw.below(900))
    const [status] = await ended
    clearTimeout(timer)
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
  expect(killed).toBeGreaterThan(0)

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
