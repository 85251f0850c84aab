import type { Clock } from '../../base/clock.ts'
import { connectOverNetwork } from '../connection/connect-over-network.ts'
import type { Session } from '../connection/session.ts'
import { type Announcement, findLocalServer, locateConfig } from '../local.ts'
import type { Profile } from '../settings/profile.ts'
import { type Check, type CheckRun, type Finding, runCheck, skipped } from './check.ts'
import {
  checkCredential,
  checkRuntime,
  checkVersion,
  fetchDateHeader,
  type RuntimeEndpoint,
  runtimeTimeoutFinding,
  skipIfSignedOut,
} from './check-runtime.ts'
import { clockSkewFinding, measureClockSkew } from './clock.ts'
import { checkDataDirFiles, checkSecretFiles } from './files.ts'
import { checkFolderTrust } from './folder.ts'
import { checkIdentityProvider } from './identity-provider.ts'
import { checkKeychain } from './keychain.ts'
import {
  checkChatProvider,
  checkEmbeddingServices,
  checkLlmServices,
  checkLocalChatProvider,
} from './providers.ts'
import { checkNode, checkPort, checkServerLock, configFindings } from './this-machine.ts'
import { checkToolServers } from './tool-servers.ts'
import { type ValidatedConfig, validateConfig } from './validate-config.ts'

export interface DoctorDependencies {
  readonly profile: Profile
  readonly session: Session
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Result of all checks except those of the store. */
export interface CheckResults {
  /** Checks in display order. */
  readonly checks: readonly Check[]
  readonly server: Announcement | undefined
  /** True if the server serves requests. */
  readonly isReady: boolean
  readonly configPath: string | null
  readonly config: ValidatedConfig
}

type RunNamedCheck = (name: string, run: CheckRun['run'], onTimeout?: Finding) => Promise<Check[]>

/** Data that several checks use. */
interface CheckContext extends DoctorDependencies {
  readonly runNamedCheck: RunNamedCheck
  readonly config: ValidatedConfig
  readonly server: Announcement | undefined
}

/** Runs all checks concurrently. Checks that need a runtime start after the runtime has responded. */
export async function runChecks(dependencies: DoctorDependencies): Promise<CheckResults> {
  const { profile, session, clock, signal } = dependencies
  const [server, { path }, config, runtime] = await Promise.all([
    findLocalServer(profile.dataDir),
    locateConfig(profile),
    validateConfig(profile, session.io),
    session.remoteRuntime(),
  ])
  const runNamedCheck: RunNamedCheck = (name, run, onTimeout) =>
    runCheck({ name, clock, signal, run, onTimeout })
  const context: CheckContext = { ...dependencies, runNamedCheck, config, server }
  const usesServer = runtime?.kind === 'server'
  const [machineChecks, runtimeChecks, keychainChecks, otherServerChecks] = await Promise.all([
    checkThisMachine(context, path),
    runtime ? checkRemoteRuntime(context, runtime) : checkInProcessRuntime(context),
    runNamedCheck('keychain', () => checkKeychain(profile)),
    server && !usesServer ? checkServer(context, server) : [],
  ])
  const serverChecks = usesServer ? runtimeChecks.filter(({ name }) => name === 'runtime') : otherServerChecks
  const isReady = serverChecks.length > 0 && serverChecks.every(({ state }) => state === 'ok')
  return {
    checks: [...machineChecks, ...runtimeChecks, ...keychainChecks],
    server,
    isReady,
    configPath: path,
    config,
  }
}

async function checkThisMachine(
  { profile, session, runNamedCheck, config, server, clock }: CheckContext,
  path: string | null,
) {
  const checks = await Promise.all([
    runNamedCheck('node', async () => checkNode()),
    runNamedCheck('data', async () => checkDataDirFiles(profile)),
    runNamedCheck('secrets', async () => checkSecretFiles(profile)),
    runNamedCheck('config', async () => configFindings(config, path)),
    runNamedCheck('mcp', async () => checkToolServers(profile, session.io.env, config)),
    runNamedCheck('folder', () => checkFolderTrust(profile, clock)),
    runNamedCheck('lock', async () => checkServerLock(server, clock.now())),
    runNamedCheck('port', signal => checkPort(profile, config, server, signal)),
    runNamedCheck('identity', signal => checkIdentityProvider(profile, config, clock, signal)),
  ])
  return checks.flat()
}

/** Checks a runtime in another process. */
async function checkRemoteRuntime(context: CheckContext, runtime: RuntimeEndpoint): Promise<Check[]> {
  const { runNamedCheck, session, server, clock, config } = context
  const timeoutFinding = runtimeTimeoutFinding(runtime)
  const runtimeChecks = await runNamedCheck(
    'runtime',
    signal => checkRuntime(runtime, signal),
    timeoutFinding,
  )
  if (runtimeChecks.some(({ state }) => state === 'failed'))
    return [...runtimeChecks, ...skippedChecks('no runtime to check')]
  const otherChecks = await Promise.all([
    runNamedCheck('version', signal => checkVersion(runtime, server, signal)),
    runNamedCheck('auth', signal => checkCredential(session, runtime, config.local, signal)),
    runNamedCheck('clock', async signal =>
      clockSkewFinding(await measureClockSkew(clock, () => fetchDateHeader(runtime, signal)), 'the runtime'),
    ),
    runNamedCheck('chat', signal => skipIfSignedOut(checkChatProvider(session.client, signal))),
    runNamedCheck('embedding', signal => skipIfSignedOut(checkEmbeddingServices(session.client, signal))),
    runNamedCheck('llm', signal => skipIfSignedOut(checkLlmServices(session.client, signal))),
  ])
  return [...runtimeChecks, ...otherChecks.flat()]
}

function skippedChecks(reason: string): Check[] {
  return ['version', 'auth', 'clock', 'chat', 'embedding', 'llm'].map(name => ({ name, ...skipped(reason) }))
}

/**
 * Returns the checks for a runtime that each command starts in its own process. Does not start it, because that could
 * create or change files.
 */
async function checkInProcessRuntime({
  profile,
  session,
  runNamedCheck,
  config: { local },
}: CheckContext): Promise<Check[]> {
  const inProcess = skipped(
    profile.asOperator ? 'with --as-operator, runs inside each command' : 'runs inside each command',
    'wb serve',
  )
  const unreadableConfig = skipped('the configuration cannot be read')
  const checks = await Promise.all([
    runNamedCheck('runtime', async () => inProcess),
    runNamedCheck('auth', signal => checkCredential(session, undefined, local, signal)),
    runNamedCheck('chat', async () => (local ? checkLocalChatProvider(local) : unreadableConfig)),
  ])
  return checks.flat()
}

/** Checks a server of the data directory that commands do not use. */
async function checkServer({ runNamedCheck, session }: CheckContext, server: Announcement): Promise<Check[]> {
  const { fetch, close } = connectOverNetwork(server, session.io, {})
  try {
    const runtime = { kind: 'server', baseUrl: server.url, fetch } as const
    return await runNamedCheck('server', signal => checkRuntime(runtime, signal))
  } finally {
    await close()
  }
}
