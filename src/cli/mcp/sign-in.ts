import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline/promises'
import { systemClock } from '../../base/clock.ts'
import { TimedOut, unlessAborted, withTimeout } from '../../base/deadline.ts'
import { isUnencryptedRemote } from '../../base/loopback.ts'
import { unexpectedResponse } from '../../client/unreachable.ts'
import type { PendingSignIn } from '../../contract/mcp-servers.ts'
import { CommandFailed, UsageError } from '../errors.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Authorization response that the browser delivers with a redirect. @see RFC 6749 section 4.1.2 */
export interface AuthorizationResponse {
  readonly state: string
  readonly code: string
  readonly iss?: string
}

/** A local HTTP listener for the redirect from an authorization server. */
export interface CallbackListener {
  readonly redirectUri: string
  /** Resolves with the URL of the first request that contains this `state`. */
  waitForRedirect(state: string): Promise<URL>
  close(): void
}

const callbackPath = '/callback'
const shownErrorCharsMax = 200
const pastedCharsMax = 16_384
const htmlPage = (text: string) =>
  `<!doctype html><meta charset="utf-8"><title>Workbase</title><p>${text} You can close this page.</p>\n`

/** Listens on a free port of the loopback address. @see RFC 8252 section 7.3 */
export async function listenForCallback(): Promise<CallbackListener> {
  const resolveByState = new Map<string, (url: URL) => void>()
  const server = createServer((request, response) => {
    const url = URL.canParse(request.url ?? '', redirectUri) ? new URL(request.url!, redirectUri) : undefined
    const resolve =
      url?.pathname === callbackPath ? resolveByState.get(url.searchParams.get('state') ?? '') : undefined
    const isExpected = request.method === 'GET' && url !== undefined && resolve !== undefined
    response.writeHead(isExpected ? 200 : 404, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'",
      connection: 'close',
    })
    response.end(
      isExpected
        ? htmlPage('The sign-in continues in your terminal.')
        : htmlPage('This link does not match a pending sign-in. Start the sign-in again from your terminal.'),
    )
    if (isExpected) response.on('close', () => resolve(url))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${callbackPath}`
  return {
    redirectUri,
    waitForRedirect: state => new Promise(resolve => void resolveByState.set(state, resolve)),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * Returns the sign-in address to open in a browser.
 *
 * @throws Unreachable  when the address is not HTTP(S), or uses unencrypted HTTP to another machine
 */
export function requireSafeAuthorizationUrl({ authorizationUrl }: PendingSignIn): string {
  const url = URL.canParse(authorizationUrl) ? new URL(authorizationUrl) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || isUnencryptedRemote(url))
    throw unexpectedResponse('the runtime returned a sign-in address that is not safe to open')
  return plainLine(url.href)
}

/**
 * Waits until the browser is redirected to this machine.
 *
 * @throws UsageError  when the sign-in expired
 */
export async function waitForBrowser(
  redirect: Promise<URL>,
  { expiresAt }: PendingSignIn,
  loginCommand: string,
  signal: AbortSignal,
): Promise<URL> {
  const remainingMs = Math.max(0, Date.parse(expiresAt) - systemClock.now())
  try {
    return await withTimeout(
      systemClock,
      remainingMs,
      timeoutSignal => unlessAborted(redirect, timeoutSignal),
      signal,
    )
  } catch (error) {
    if (error instanceof TimedOut)
      throw new UsageError('the sign-in expired before you completed it in the browser', [loginCommand])
    throw error
  }
}

/** Returns the first nonblank line of stdin, trimmed. @throws UsageError  when all lines are blank */
export async function readPastedLine(stdin: NodeJS.ReadStream, loginCommand: string): Promise<string> {
  for await (const line of createInterface({ input: stdin }))
    if (line.trim() !== '') return line.trim().slice(0, pastedCharsMax)
  throw new UsageError('stdin contains no address', [loginCommand])
}

/** Parses the address that the user pasted. @throws UsageError */
export function parsePastedUrl(text: string, loginCommand: string): URL {
  if (URL.canParse(text)) return new URL(text)
  throw new UsageError('the pasted text is not a valid address', [loginCommand])
}

/**
 * Reads the authorization response from the URL of the redirect.
 *
 * @throws CommandFailed  when the user or the authorization server rejected the sign-in
 * @throws UsageError     when the URL does not belong to this sign-in
 */
export function parseAuthorizationResponse(
  { searchParams }: URL,
  state: string,
  loginCommand: string,
): AuthorizationResponse {
  if (searchParams.get('state') !== state)
    throw new UsageError('the address belongs to another sign-in', [loginCommand])
  const error = searchParams.get('error')
  if (error !== null)
    throw new CommandFailed(`the sign-in was rejected: ${plainLine(error).slice(0, shownErrorCharsMax)}`, [
      loginCommand,
    ])
  const code = searchParams.get('code')
  if (!code) throw new UsageError('the address contains no authorization code', [loginCommand])
  const iss = searchParams.get('iss')
  return { state, code, ...(iss !== null && { iss }) }
}
