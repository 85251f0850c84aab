import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Sandbox } from '../commands/sandbox.ts'
import { setUpSignIn, signIn } from '../commands/sign-in.ts'
import { runInTerminal, stripSequences } from '../commands/terminal.ts'
import { programPath } from '../harness/program.ts'

const rounds = 200
/** Time in which a command that does not wait would have exited. */
const graceMs = 500

async function commandLine(env: Record<string, string>): Promise<ChildProcess> {
  const child = fork(programPath('renew'), {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'message')
  return child
}

async function token(child: ChildProcess): Promise<string> {
  const answer = once(child, 'message')
  child.send('token')
  const [said] = (await answer) as [string]
  return said
}

/** Makes the stored token due for renewal before its next use. */
function makeDue({ env }: Sandbox): void {
  const folder = join(env.XDG_CONFIG_HOME!, 'workbase', 'credentials')
  const [name] = readdirSync(folder)
  const entry = join(folder, name!)
  const stored = JSON.parse(readFileSync(entry, 'utf8')) as { password: string }
  const tokens = { ...JSON.parse(stored.password), renewAt: 0 }
  writeFileSync(entry, JSON.stringify({ ...stored, password: JSON.stringify(tokens) }))
}

test(`two processes renew one login concurrently with rotating refresh tokens, ${rounds} times, and stay signed in`, async () => {
  const { sandbox, server, provider } = await setUpSignIn()
  await signIn(sandbox, server.url)
  const commands = await Promise.all([commandLine(sandbox.env), commandLine(sandbox.env)])
  const seen = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    makeDue(sandbox)
    const [one, other] = await Promise.all(commands.map(token))
    expect(one).toBe(other)
    expect(one).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    seen.add(one!)
  }
  expect(seen.size).toBe(rounds)
  expect(provider.requests.filter(({ form }) => form.get('grant_type') === 'refresh_token').length).toBe(
    rounds,
  )
  expect((await sandbox.spawnWb(['whoami'])).stdout).toMatch(/^alice@/)
}, 120_000)

/**
 * A proxy for a runtime. While it holds, responses to renewals are delayed until `letGo`, and other requests get
 * no response.
 */
async function relay(runtime: string) {
  const state = { url: '', holds: false, renewals: 0, letGo: undefined as (() => void) | undefined }
  const server = createServer((asked, answer) => {
    const { method, headers, url: path = '' } = asked
    if (path === '/auth/device/refresh') state.renewals++
    else if (state.holds) return
    const onward = send(new URL(path, runtime), { method, headers }, reply => {
      const pass = () => {
        answer.writeHead(reply.statusCode!, reply.headers)
        reply.pipe(answer)
      }
      if (state.holds) state.letGo = pass
      else pass()
    })
    asked.pipe(onward)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return state
}

test('Ctrl-C during a renewal does not sign out', async () => {
  const { sandbox, server } = await setUpSignIn()
  const between = await relay(server.url)
  const { status, text } = await signIn(sandbox, between.url)
  expect(status, text).toBe(0)
  makeDue(sandbox)
  between.holds = true
  let isStopped = false
  const stopped = await runInTerminal(sandbox, ['workspaces', 'list'], {
    answer() {
      // The provider has invalidated the old token by then.
      if (isStopped || !between.letGo) return undefined
      isStopped = true
      setTimeout(between.letGo, graceMs)
      return '\x03'
    },
  })
  expect([stopped.status, stripSequences(stopped.text)]).toEqual([
    130,
    expect.stringContaining('✗ interrupted'),
  ])
  between.holds = false
  const next = await sandbox.spawnWb(['whoami'])
  expect(next.stdout, next.stderr).toMatch(/^alice@/)
  // The token is stored, because the runtime allows only a short time to request it again.
  expect(between.renewals).toBe(1)
})
