import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline/promises'
import { systemClock } from '../../base/clock.ts'
import { TimedOut, unlessAborted, within } from '../../base/deadline.ts'
import { isInTheClear } from '../../base/loopback.ts'
import { unexpectedResponse } from '../../client/unreachable.ts'
import type { PendingSignIn } from '../../contract/mcp-servers.ts'
import { PartlyFailed, UsageError } from '../faults.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Authorization response from the browser. */
export interface AuthorizationResponse {
  readonly state: string
  readonly code: string
  readonly iss?: string
}

/** A local HTTP listener for the redirect from an authorization server. */
export interface CallbackListener {
  readonly redirectUri: string
  /** Resolves with the address of the first request that contains the state. */
  returned(state: string): Promise<URL>
  close(): void
}

const callbackPath = '/callback'
const shownChars = 200
const pastedCharsMax = 16_384
const page = (text: string) =>
  `<!doctype html><meta charset="utf-8"><title>Workbase</title><p>${text} You can close this page.</p>\n`

/** Listens on a free port of the loopback address. @see RFC 8252 section 7.3 */
export async function listenForCallback(): Promise<CallbackListener> {
  const waiting = new Map<string, (url: URL) => void>()
  const server = createServer((request, response) => {
    const url = URL.canParse(request.url ?? '', redirectUri) ? new URL(request.url!, redirectUri) : undefined
    const resolve =
      url?.pathname === callbackPath ? waiting.get(url.searchParams.get('state') ?? '') : undefined
    const isExpected = request.method === 'GET' && url !== undefined && resolve !== undefined
    response.writeHead(isExpected ? 200 : 404, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'",
      connection: 'close',
    })
    response.end(
      isExpected
        ? page('The browser returned to the command line.')
        : page('No sign-in waits at this address.'),
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
    returned: state => new Promise(resolve => void waiting.set(state, resolve)),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/**
 * Returns the address to open in a browser.
 *
 * @throws Unreachable  when the address is not safe to open
 */
export function pageOf({ authorizationUrl }: PendingSignIn): string {
  const url = URL.canParse(authorizationUrl) ? new URL(authorizationUrl) : undefined
  if (!url || !/^https?:$/.test(url.protocol) || isInTheClear(url))
    throw unexpectedResponse('the runtime began a sign-in at an address that cannot be opened')
  return plainLine(url.href)
}

/**
 * Waits for the browser, until the sign-in expires.
 *
 * @throws UsageError  when the sign-in expired
 */
export async function returnedInTime(
  returned: Promise<URL>,
  { expiresAt }: PendingSignIn,
  again: string,
  signal: AbortSignal,
): Promise<URL> {
  const leftMs = Math.max(0, Date.parse(expiresAt) - systemClock.now())
  try {
    return await within(systemClock, leftMs, until => unlessAborted(returned, until), signal)
  } catch (error) {
    if (error instanceof TimedOut)
      throw new UsageError('the sign-in expired before the browser returned', [again])
    throw error
  }
}

/** Reads one line from a pipe. @throws UsageError  when there is no line */
export async function pastedLine(stdin: NodeJS.ReadStream, again: string): Promise<string> {
  for await (const line of createInterface({ input: stdin }))
    if (line.trim() !== '') return line.trim().slice(0, pastedCharsMax)
  throw new UsageError('no address was given on stdin', [again])
}

/** Parses the address that the user pasted. @throws UsageError */
export function pastedUrl(text: string, again: string): URL {
  if (URL.canParse(text)) return new URL(text)
  throw new UsageError('what was pasted is not an address', [again])
}

/**
 * Reads the authorization response from the address of the redirect.
 *
 * @throws PartlyFailed  when the user or the authorization server refused
 * @throws UsageError    when the address does not belong to this sign-in
 */
export function responseIn({ searchParams }: URL, state: string, again: string): AuthorizationResponse {
  if (searchParams.get('state') !== state)
    throw new UsageError('the address is not that of this sign-in', [again])
  const error = searchParams.get('error')
  if (error !== null)
    throw new PartlyFailed(`the sign-in was refused: ${plainLine(error).slice(0, shownChars)}`, [again])
  const code = searchParams.get('code')
  if (!code) throw new UsageError('the address holds no code', [again])
  const iss = searchParams.get('iss')
  return { state, code, ...(iss !== null && { iss }) }
}
