import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { signIn, signInStage } from '../commands/sign-in.ts'

const rounds = 200

async function commandLine(env: Record<string, string>): Promise<ChildProcess> {
  const child = fork('test/fixtures/renew.ts', {
    execArgv: ['--import', 'tsx'],
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

test(`two processes renew one login at once, with refresh tokens that are good once, ${rounds} times: nobody is signed out`, async () => {
  const { here, server, provider } = await signInStage()
  await signIn(here, server.url)
  const folder = join(here.env.XDG_CONFIG_HOME!, 'workbase', 'credentials')
  const [name] = readdirSync(folder)
  const entry = join(folder, name!)
  const kept = () => JSON.parse(readFileSync(entry, 'utf8')) as { password: string }
  const commands = await Promise.all([commandLine(here.env), commandLine(here.env)])
  const seen = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const stored = kept()
    const tokens = { ...JSON.parse(stored.password), renewAt: 0 }
    writeFileSync(entry, JSON.stringify({ ...stored, password: JSON.stringify(tokens) }))
    const [one, other] = await Promise.all(commands.map(token))
    expect(one).toBe(other)
    expect(one).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/)
    seen.add(one!)
  }
  expect(seen.size).toBe(rounds)
  expect(provider.asked.filter(({ form }) => form.get('grant_type') === 'refresh_token').length).toBe(rounds)
  expect((await here.wb(['whoami'])).stdout).toMatch(/^alice@/)
}, 120_000)
