import { addAbortSignal, type Readable } from 'node:stream'
import type { Me } from '../../contract/auth.ts'
import { WbError } from '../../contract/errors.ts'
import { browserSignInHint } from '../command/sign-in-hints.ts'
import type { AuthMethods } from '../connection/auth-methods.ts'
import type { Session } from '../connection/session.ts'
import { credentialKind } from '../credentials/credential.ts'
import { parseTokens, type StoredTokens } from '../credentials/token-store.ts'
import { isCi } from '../environment.ts'
import { UsageError } from '../errors.ts'
import { loginCommand } from '../settings/login-command.ts'
import { parseHeaderToken, runtimeKey } from '../settings/profile.ts'
import { pollForTokens, startDeviceLogin } from './device-login.ts'
import { DeviceScreen, type DeviceScreenDependencies } from './device-screen.ts'
import { fetchIdentity } from './identity.ts'

/** Tokens that the runtime has accepted, and the identity of the caller. */
export interface SignedIn {
  readonly kind: ReturnType<typeof credentialKind>
  readonly tokens: StoredTokens
  readonly me: Me
}

/** Ways in which the user can provide a credential. */
export interface SignInOptions {
  /** Reads a token that the user provides; undefined for an interactive sign-in. */
  readonly readToken: (() => Promise<string>) | undefined
  /** Prompts for an API key; undefined if there is no terminal. */
  readonly promptForKey: (() => Promise<string>) | undefined
  readonly screen: DeviceScreenDependencies & { signal: AbortSignal }
}

/**
 * Signs in with a token if the user provides one, otherwise with a method that the runtime supports: the device
 * flow, or an API key.
 *
 * @throws UsageError  the runtime supports neither method, there is no terminal, or the command runs in CI
 */
export async function signIn(
  session: Session,
  { modes, loginPath }: AuthMethods,
  { readToken, promptForKey, screen }: SignInOptions,
): Promise<SignedIn> {
  const { profile } = session
  const tokenCommand = `${loginCommand(profile)} --with-token < KEY_FILE`
  if (readToken) return signInByToken(session, await readToken(), 'the token')
  if (isCi(screen.io.env))
    throw new UsageError('browser sign-in is not available in CI (CI is set)', [tokenCommand])
  if (modes.device) {
    screen.output.warn(`  Signing in to ${runtimeKey(profile)}`)
    return signInByDevice(session, screen)
  }
  if (!modes.apiKey)
    throw new UsageError('this runtime supports browser sign-in only', [
      browserSignInHint(profile.url, loginPath),
      tokenCommand,
    ])
  if (!promptForKey) throw new UsageError('there is no terminal to type a key in', [tokenCommand])
  return signInByToken(session, await promptForKey(), 'the key')
}

/** Signs in with a browser on any device. */
async function signInByDevice(
  session: Session,
  screen: DeviceScreenDependencies & { signal: AbortSignal },
): Promise<SignedIn> {
  const {
    io: { clock },
    signal,
  } = screen
  const deviceSignIn = await startDeviceLogin(session.anonymousClient, clock)
  const deviceScreen = new DeviceScreen(deviceSignIn, screen)
  deviceScreen.show()
  try {
    const polling = {
      client: session.anonymousClient,
      clock,
      signal,
      onProblemChange: (reason?: string) => deviceScreen.showProblem(reason),
    }
    const tokens = parseTokens(await pollForTokens(deviceSignIn, polling), clock.now())
    return { kind: 'login', tokens, me: await fetchIdentity(session.clientWithToken(tokens.token)) }
  } catch (error) {
    throw hasSignInEnded(error) ? withNextCommand(error, loginCommand(session.profile)) : error
  } finally {
    deviceScreen.end()
  }
}

function hasSignInEnded(error: unknown): error is WbError {
  return error instanceof WbError && ['access_denied', 'expired_token', 'invalid_grant'].includes(error.code)
}

/** Returns an error with the command to run next. */
function withNextCommand({ code, message, facts }: WbError, next: string): WbError {
  return new WbError(code, message, { ...facts, next: [next] })
}

/**
 * Signs in with a token.
 *
 * @param source  source of the token, for messages
 * @throws UsageError  the token is malformed
 * @throws WbError unauthorized  the runtime does not accept it
 */
async function signInByToken(session: Session, text: string, source: string): Promise<SignedIn> {
  const token = parseHeaderToken(text, source)
  const me = await fetchIdentity(session.clientWithToken(token)).catch(error => {
    throw error instanceof WbError && error.code === 'unauthorized' ? notAcceptedError(error, session) : error
  })
  const expiresAt = me.expiresAt === null ? undefined : me.expiresAt * 1_000
  return { kind: credentialKind(token), tokens: { token, ...(expiresAt !== undefined && { expiresAt }) }, me }
}

function notAcceptedError({ facts, message }: WbError, { profile }: Session): WbError {
  const next = [loginCommand(profile, ' --with-token < KEY_FILE')]
  const { requestId } = facts
  return new WbError('unauthorized', `the runtime did not accept the credential: ${message}`, {
    requestId,
    next,
  })
}

/** Reads a token from a pipe, or prompts for it in a terminal, without echo. */
export function readToken(
  stdin: Readable & { isTTY?: boolean },
  signal: AbortSignal,
  prompt: (question: string) => Promise<string>,
): Promise<string> {
  return stdin.isTTY ? prompt('Key or token:') : readTokenFromPipe(stdin, signal)
}

async function readTokenFromPipe(stream: Readable, signal: AbortSignal): Promise<string> {
  const parts: string[] = []
  let chars = 0
  for await (const part of addAbortSignal(signal, stream)) {
    chars += part.length
    if (chars > tokenCharsMax) throw new UsageError('the input is too long for a token')
    parts.push(String(part))
  }
  return parts.join('')
}

const tokenCharsMax = 64_000
