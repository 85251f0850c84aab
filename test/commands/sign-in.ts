import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  audience,
  browse,
  clients,
  type ProviderOptions,
  type RunningProvider,
  startProvider,
} from '../harness/identity-provider.ts'
import { createSandbox, type Sandbox, sandboxFactory, type TestServer } from './sandbox.ts'
import { runInTerminal, stripSequences, type TerminalResult } from './terminal.ts'

export const secrets = {
  CLIENT: clients.confidential.secret,
  SESSION: 'session-secret-of-a-test-of-32-bytes-and-more',
}

/** A runtime with a real identity provider, and a sandbox with its own keychain. */
export interface SignInSetup {
  readonly sandbox: Sandbox
  readonly provider: RunningProvider
  readonly server: TestServer
  /** Restarts the runtime on the same port. */
  restart(): Promise<TestServer>
}

export async function setUpSignIn(
  options: ProviderOptions & { mode?: 'any' | 'oidc' } = {},
): Promise<SignInSetup> {
  const { mode = 'any', ...providing } = options
  const provider = await startProvider({ deviceIntervalSeconds: 1, ...providing })
  const sandbox = createSandbox()
  const { WB_DATA_DIR } = sandbox.env
  delete sandbox.env.WB_DATA_DIR
  sandbox.env.WB_KEYCHAIN = 'file'
  const config = join(sandbox.home, 'workbase.yaml')
  const client = {
    clientId: clients.confidential.id,
    clientSecretRef: 'env:CLIENT',
    sessionSecretRef: 'env:SESSION',
  }
  const auth = { mode, anonymousPolicy: 'reject', oidc: { issuer: provider.issuer, audience, client } }
  const runtime = { rateLimit: { authCapacity: 10_000 } }
  writeFileSync(config, JSON.stringify({ version: 1, auth, runtime }))
  const start = (port: string) =>
    sandbox.serve(['--config', config, '--port', port], { env: { ...secrets, WB_DATA_DIR: WB_DATA_DIR! } })
  const server = await start('0')
  return { sandbox, provider, server, restart: () => start(new URL(server.url).port) }
}

/** Returns the address and the device code on the screen. */
function shownCode(screen: string): { url: string; code: string } | undefined {
  const found = /open\s+(\S+)\s+enter\s+(\S+)/.exec(screen)
  return found ? { url: found[1]!, code: found[2]! } : undefined
}

/** Signs in at the provider, and approves or denies the code. */
export async function completeSignIn(
  { url, code }: { url: string; code: string },
  who: { login?: string; deny?: boolean } = {},
): Promise<void> {
  await browse(`${url}?user_code=${code}`, who)
}

/** Signs in at a terminal, and returns the output and the exit status. */
export async function signIn(
  sandbox: Sandbox,
  url: string,
  {
    onCode = completeSignIn,
    onText,
  }: {
    /** Handles the device code. The return value is typed into the terminal. */
    onCode?: (shown: { url: string; code: string }) => unknown
    /** Called with the whole screen whenever it changes. */
    onText?: (screen: string) => void
  } = {},
): Promise<TerminalResult> {
  let screen = ''
  let isSeen = false
  const ended = await runInTerminal(sandbox, ['login', url], {
    answer(written) {
      screen += written
      onText?.(stripSequences(screen))
      const shown = shownCode(stripSequences(screen))
      if (!shown || isSeen) return undefined
      isSeen = true
      const typed = onCode(shown)
      return typeof typed === 'string' ? typed : undefined
    },
  })
  return { ...ended, text: stripSequences(ended.text) }
}

const sandboxWithKeys = sandboxFactory(async ({ wb, home }) => {
  const config = join(home, 'access.yaml')
  writeFileSync(config, 'version: 1\nauth: { mode: apiKey, anonymousPolicy: reject }\n')
  const minted = async (...line: string[]) =>
    (await wb(['keys', 'create', ...line, '--as-operator'], { env: { WB_CONFIG: config } })).stdout.trim()
  return {
    key: await minted('laptop', '--role', 'editor'),
    endingKey: await minted('ci', '--role', 'viewer', '--expires', '2999-01-01'),
  }
})

/** Starts a runtime that accepts only API keys, one of which expires, and returns a sandbox without a login. */
export async function startRuntimeWithKeys(): Promise<{
  sandbox: Sandbox
  url: string
  key: string
  endingKey: string
}> {
  const sandbox = await sandboxWithKeys()
  const { url } = await sandbox.serve(['--config', join(sandbox.home, 'access.yaml')])
  delete sandbox.env.WB_DATA_DIR
  sandbox.env.WB_KEYCHAIN = 'file'
  return { sandbox, url, key: sandbox.key, endingKey: sandbox.endingKey }
}
