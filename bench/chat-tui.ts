/**
 * Measures the chat in a terminal while a response streams at 200 tokens per second: the delay until a pressed key
 * and a token are visible, the CPU time, the memory, and the effect of a long response.
 *
 * npm run bench:chat-tui
 */
import { setTimeout as wait } from 'node:timers/promises'
import { spawn } from '@lydell/node-pty'
import { chatRuntime, type ScriptedTurn } from '../test/fakes/chat-runtime.ts'
import { cpuSecondsOf, memoryOf } from '../test/harness/process-usage.ts'
import { remove, temporaryFolder } from './server.ts'
import { quantile, table } from './statistics.ts'

const perSecond = 200
const seconds = 15
const keys = 60

const runtime = await chatRuntime()
const home = temporaryFolder()
let sentAt = new Map<string, number>()
/** Number of tokens before the measured part of the response. */
let lead = 0
runtime.play = async (stage: ScriptedTurn) => {
  for (let at = 0; at < lead; at++) await stage.sendToken(`word${at} ${at % 12 === 11 ? '\n\n' : ''}`)
  // The burst is not part of the measurement.
  if (lead > 0) await shows(`word${lead - 1}`)
  await wait(500)
  const began = performance.now()
  for (let at = 0; at < perSecond * seconds; at++) {
    const word = `w${lead}x${at}`
    sentAt.set(word, performance.now())
    await stage.sendToken(`${word} ${at % 12 === 11 ? '.\n\n' : ''}`)
    await wait(Math.max(0, began + (at * 1_000) / perSecond - performance.now()))
  }
  await stage.finish('all')
}

const child = spawn(process.execPath, ['bin/run.js', 'chat', 'maven'], {
  cols: 100,
  rows: 30,
  env: { PATH: process.env.PATH ?? '', HOME: home, WB_URL: runtime.url, TERM: 'xterm-256color' },
})
let seen = ''
const waiting = new Set<() => void>()
child.onData(text => {
  seen += text
  for (const done of waiting) done()
  waiting.clear()
})

/** Waits until the output of the terminal contains a text after an offset. Returns the time. */
async function shows(words: string, from = 0): Promise<number> {
  while (!seen.includes(words, from)) await new Promise<void>(done => waiting.add(done))
  return performance.now()
}

async function round(ahead: number) {
  lead = ahead
  sentAt = new Map()
  seen = ''
  const tokenMs: number[] = []
  child.write(`go ${ahead}\r`)
  await shows(`w${lead}x1 `)
  const watched = (async () => {
    for (let at = 20; at < perSecond * (seconds - 1); at += 37) {
      const word = `w${lead}x${at}`
      const at0 = await shows(word)
      tokenMs.push(at0 - sentAt.get(word)!)
    }
  })()
  const echoMs: number[] = []
  for (let at = 0; at < keys; at++) {
    await wait(90 + (at % 7) * 11)
    const mark = String.fromCharCode(0x410 + (at % 32))
    const from = seen.length
    const pressed = performance.now()
    child.write(mark)
    echoMs.push((await shows(mark, from)) - pressed)
  }
  // No keys are sent in this part.
  const [cpuBefore, before] = [cpuSecondsOf(child.pid), performance.now()]
  await watched
  const share = (cpuSecondsOf(child.pid) - cpuBefore) / ((performance.now() - before) / 1_000)
  await shows('tokens')
  child.write('\x15')
  await wait(300)
  const memoryMb = memoryOf(child.pid).now / 1_000_000
  return { ahead, echo: quantile(echoMs, 0.95), token: quantile(tokenMs, 0.95), cpu: share * 100, memoryMb }
}

await shows('Maven')
await wait(500)
const rounds = [await round(0), await round(10_000), await round(50_000)]
console.log(
  table(
    ['earlier tokens', 'key p95 ms', 'token p95 ms', 'CPU % of a core', 'memory MB'],
    rounds.map(({ ahead, echo, token, cpu, memoryMb }) => [
      String(ahead),
      echo.toFixed(1),
      token.toFixed(1),
      cpu.toFixed(1),
      memoryMb.toFixed(0),
    ]),
  ),
)
child.write('\x03\x03')
await runtime.close()
remove(home)
