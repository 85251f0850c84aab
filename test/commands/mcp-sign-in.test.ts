import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agents } from '../../src/contract/agents.ts'
import { llmServices } from '../../src/contract/services.ts'
import { startChatServer } from '../fakes/chat-server.ts'
import { drive, startProvider } from '../harness/identity-provider.ts'
import { startProtectedServer } from '../mcp-sign-in/stage.ts'
import { type Ended, place, roomAt, type Served } from './wb.ts'

const servers = (...words: string[]) => ['mcp', 'servers', ...words]
const loginLine = 'wb mcp servers login issues'
const shared = place(afterAll)
let runtime: Served
beforeAll(async () => {
  runtime = await shared.serve()
})

/** Creates a workspace with an MCP server that requires sign-in. */
async function signInRoom() {
  const resources: Record<string, string> = {}
  const provider = await startProvider({ registration: true, revocation: true, resources })
  const server = await startProtectedServer(provider)
  resources[server.url] = 'tools'
  const room = await roomAt(shared, runtime)
  const added = await room.wb(servers('add', 'issues', server.url, '--auth', 'oauth2'))
  expect(added).toMatchObject({ status: 0, stderr: `  ${loginLine}\n` })
  return { ...room, server, mcpServerId: added.stdout.trim() }
}

type SignInRoom = Awaited<ReturnType<typeof signInRoom>>

/**
 * Runs a login. @param visit  visits the sign-in page; its return value is typed into the terminal
 */
function login(
  { env, home }: SignInRoom,
  args: readonly string[],
  visit: (page: string) => Promise<string | undefined>,
): Promise<Ended> {
  const line = [resolve('bin/run.js'), ...servers('login', 'issues', ...args)]
  const child = spawn(process.execPath, line, { cwd: home, env })
  let [stdout, stderr] = ['', '']
  let isVisited = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  return new Promise((done, fail) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
      const page = /Sign in at: (\S+)\n/.exec(stderr)?.[1]
      if (page === undefined || isVisited) return
      isVisited = true
      visit(page).then(typed => child.stdin.end(typed), fail)
    })
    child.on('close', status => done({ status, stdout, stderr }))
  })
}

/** Signs in at the page, and returns the address of the final redirect without requesting it. */
async function visited(page: string): Promise<string> {
  const redirectUri = new URL(page).searchParams.get('redirect_uri')!
  return (await drive(page, { login: 'ann', stopAt: redirectUri })).url
}

const shownSignIn = async ({ wb }: SignInRoom) =>
  /^sign-in\t(.*)$/m.exec((await wb(servers('show', 'issues'))).stdout)?.[1]

test('a user signs in to an MCP server in a browser, uses it, and signs out', {
  timeout: 60_000,
}, async () => {
  const room = await signInRoom()
  expect(await shownSignIn(room)).toBe(`not signed in: ${loginLine}`)
  const before = await room.wb(servers('test', 'issues'))
  expect([before.status, before.stderr]).toEqual([1, expect.stringContaining(loginLine)])
  const ended = await login(room, [], async page => {
    const { status, text } = await drive(page, { login: 'ann' })
    expect([status, text]).toEqual([200, expect.stringContaining('continues in your terminal')])
    return undefined
  })
  expect([ended.status, ended.stderr]).toEqual([0, expect.stringMatching(/✓ signed in to issues\n$/)])
  expect(await shownSignIn(room)).toBe('signed in')
  expect(await room.wb(servers('test', 'issues'))).toMatchObject({ status: 0, stdout: 'whoami\tyes\n' })
  const out = await room.wb(servers('logout', 'issues'))
  expect(out).toMatchObject({ status: 0, stderr: '  ✓ signed out of issues\n' })
  expect(await shownSignIn(room)).toBe(`not signed in: ${loginLine}`)
})

test('accepts a pasted redirect address with --no-browser', { timeout: 60_000 }, async () => {
  const room = await signInRoom()
  const ended = await login(room, ['--no-browser', '--json'], async page => `${await visited(page)}\n`)
  expect(ended.status, ended.stderr).toBe(0)
  expect(JSON.parse(ended.stdout)).toMatchObject({ signedIn: true, scopes: ['tools'] })
})

test.each([
  [
    'an address of another sign-in',
    'http://127.0.0.1:1/callback?state=other&code=one\n',
    2,
    'belongs to another sign-in',
  ],
  ['no address', 'hello\n', 2, 'not a valid address'],
  ['nothing', '', 2, 'Stdin contains no address'],
])(
  'rejects %s, and suggests the command that starts again',
  { timeout: 60_000 },
  async (_what, typed, status, words) => {
    const room = await signInRoom()
    const ended = await login(room, ['--no-browser'], async () => typed)
    expect([ended.status, ended.stderr]).toEqual([status, expect.stringContaining(words)])
    expect(ended.stderr).toContain(loginLine)
    expect(await shownSignIn(room)).toBe(`not signed in: ${loginLine}`)
  },
)

test('stores no login if the user denies access at the authorization server', { timeout: 60_000 }, async () => {
  const room = await signInRoom()
  const ended = await login(room, [], async page => {
    await drive(page, { deny: true })
    return undefined
  })
  expect([ended.status, ended.stderr]).toEqual([1, expect.stringContaining('rejected: access_denied')])
})

test('an answer without the tools of a server reports where to sign in', { timeout: 60_000 }, async () => {
  const room = await signInRoom()
  await login(room, [], async page => {
    await drive(page, { login: 'ann' })
    return undefined
  })
  const model = await startChatServer()
  const params = { workspaceId: room.workspaceId }
  const service = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: model.url }
  const { llmServiceId } = await room.call(llmServices.create, { params, body: service })
  const toolIds = [`mcp:${room.mcpServerId}:whoami`]
  await room.call(agents.create, { params, body: { name: 'helper', llmServiceId, toolIds } })
  const ask = () => room.wb(['ask', 'Who am I?', '--agent', 'helper'])
  expect((await ask()).stderr).not.toContain('sign in with')
  await room.wb(servers('logout', 'issues'))
  expect((await ask()).stderr).toContain(`to use the tools of issues, sign in with: ${loginLine}\n`)
  await model.close()
})
