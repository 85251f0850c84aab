import { spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agents } from '../../src/contract/agents.ts'
import { llmServices } from '../../src/contract/services.ts'
import { startChatServer } from '../fakes/chat-server.ts'
import { browse, startProvider } from '../harness/identity-provider.ts'
import { startProtectedServer } from '../mcp-sign-in/sign-in-setup.ts'
import { addWorkspaceSandbox, type CommandResult, createSandbox, type TestServer } from './sandbox.ts'

const servers = (...words: string[]) => ['mcp', 'servers', ...words]
const loginLine = 'wb mcp servers login issues'
const shared = createSandbox(afterAll)
let runtime: TestServer
beforeAll(async () => {
  runtime = await shared.serve()
})

/** Creates a workspace with an MCP server that requires sign-in. */
async function createSignInWorkspace() {
  const resources: Record<string, string> = {}
  const provider = await startProvider({ registration: true, revocation: true, resources })
  const server = await startProtectedServer(provider)
  resources[server.url] = 'tools'
  const workspace = await addWorkspaceSandbox(shared, runtime)
  const added = await workspace.wb(servers('add', 'issues', server.url, '--auth', 'oauth2'))
  expect(added).toMatchObject({ status: 0, stderr: `  ${loginLine}\n` })
  return { ...workspace, server, mcpServerId: added.stdout.trim() }
}

type SignInWorkspace = Awaited<ReturnType<typeof createSignInWorkspace>>

/** Runs a login. `visit` visits the sign-in page, and its return value is typed into the terminal. */
function login(
  { env, home }: SignInWorkspace,
  args: readonly string[],
  visit: (page: string) => Promise<string | undefined>,
): Promise<CommandResult> {
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
async function signInAtPage(page: string): Promise<string> {
  const redirectUri = new URL(page).searchParams.get('redirect_uri')!
  return (await browse(page, { login: 'ann', stopAt: redirectUri })).url
}

const signInState = async ({ wb }: SignInWorkspace) =>
  /^sign-in\t(.*)$/m.exec((await wb(servers('show', 'issues'))).stdout)?.[1]

test('a user signs in to an MCP server in a browser, uses it, and signs out', {
  timeout: 60_000,
}, async () => {
  const workspace = await createSignInWorkspace()
  expect(await signInState(workspace)).toBe(`not signed in: ${loginLine}`)
  const before = await workspace.wb(servers('test', 'issues'))
  expect([before.status, before.stderr]).toEqual([1, expect.stringContaining(loginLine)])
  const ended = await login(workspace, [], async page => {
    const { status, text } = await browse(page, { login: 'ann' })
    expect([status, text]).toEqual([200, expect.stringContaining('continues in your terminal')])
    return undefined
  })
  expect([ended.status, ended.stderr]).toEqual([0, expect.stringMatching(/✓ signed in to issues\n$/)])
  expect(await signInState(workspace)).toBe('signed in')
  expect(await workspace.wb(servers('test', 'issues'))).toMatchObject({ status: 0, stdout: 'whoami\tyes\n' })
  const out = await workspace.wb(servers('logout', 'issues'))
  expect(out).toMatchObject({ status: 0, stderr: '  ✓ signed out of issues\n' })
  expect(await signInState(workspace)).toBe(`not signed in: ${loginLine}`)
})

test('accepts a pasted redirect address with --no-browser', { timeout: 60_000 }, async () => {
  const workspace = await createSignInWorkspace()
  const ended = await login(
    workspace,
    ['--no-browser', '--json'],
    async page => `${await signInAtPage(page)}\n`,
  )
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
    const workspace = await createSignInWorkspace()
    const ended = await login(workspace, ['--no-browser'], async () => typed)
    expect([ended.status, ended.stderr]).toEqual([status, expect.stringContaining(words)])
    expect(ended.stderr).toContain(loginLine)
    expect(await signInState(workspace)).toBe(`not signed in: ${loginLine}`)
  },
)

test('stores no login if the user denies access at the authorization server', {
  timeout: 60_000,
}, async () => {
  const workspace = await createSignInWorkspace()
  const ended = await login(workspace, [], async page => {
    await browse(page, { deny: true })
    return undefined
  })
  expect([ended.status, ended.stderr]).toEqual([1, expect.stringContaining('rejected: access_denied')])
})

test('an answer without the tools of a server reports where to sign in', { timeout: 60_000 }, async () => {
  const workspace = await createSignInWorkspace()
  await login(workspace, [], async page => {
    await browse(page, { login: 'ann' })
    return undefined
  })
  const model = await startChatServer()
  const params = { workspaceId: workspace.workspaceId }
  const service = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl: model.url }
  const { llmServiceId } = await workspace.call(llmServices.create, { params, body: service })
  const toolIds = [`mcp:${workspace.mcpServerId}:whoami`]
  await workspace.call(agents.create, { params, body: { name: 'helper', llmServiceId, toolIds } })
  const ask = () => workspace.wb(['ask', 'Who am I?', '--agent', 'helper'])
  expect((await ask()).stderr).not.toContain('sign in with')
  await workspace.wb(servers('logout', 'issues'))
  expect((await ask()).stderr).toContain(`to use the tools of issues, sign in with: ${loginLine}\n`)
  await model.close()
})
