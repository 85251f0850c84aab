import { authorizationErrors, deviceTokenErrors } from '../../../src/contract/auth.ts'
import {
  Browser,
  interceptProvider,
  openSignInFixture,
  type SignInFixtureOptions,
} from '../../auth/session/sign-in-fixture.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import type { RunningProvider } from '../../harness/identity-provider.ts'
import { open, type TestResponse } from '../../harness/runtime.ts'
import type { Provocation, Provocations } from './provocation.ts'

/** A runtime with an identity provider, and a browser that uses it. */
async function signingIn(options?: SignInFixtureOptions) {
  const { provider, opened } = await openSignInFixture(options)
  const wb = await serveOverHttp(opened)
  return { provider, wb, browser: new Browser(wb) }
}

function tokenAnswers(provider: RunningProvider, status: number, error: string): void {
  interceptProvider(provider, ({ path }) =>
    path === '/token' ? { status, body: JSON.stringify({ error }) } : undefined,
  )
}

/** Parameters with which the provider redirects the browser back. */
function sentBack(code: string): Provocation {
  return async () => {
    const { browser } = await signingIn()
    await browser.send('GET /auth/login')
    return browser.send(`GET /auth/callback?error=${code}&state=x`)
  }
}

/** Response of the provider to a device that polls. */
function polled(code: string): Provocation {
  return async () => {
    const { provider, wb } = await signingIn()
    tokenAnswers(provider, 400, code)
    return wb.send('POST /auth/device/token', { device_code: 'code' })
  }
}

async function signedIn(options?: SignInFixtureOptions) {
  const made = await signingIn(options)
  await made.browser.signIn()
  return made
}

async function loggedIn(
  options: SignInFixtureOptions,
  change: (line: string) => string = line => line,
): Promise<TestResponse> {
  const { browser } = await signingIn(options)
  return browser.send(change(await browser.returnFromProvider()))
}

export const signIn = {
  ...(Object.fromEntries(authorizationErrors.map(code => [code, sentBack(code)])) as Record<
    (typeof authorizationErrors)[number],
    Provocation
  >),
  ...(Object.fromEntries(deviceTokenErrors.map(code => [code, polled(code)])) as Record<
    (typeof deviceTokenErrors)[number],
    Provocation
  >),
  invalid_request: async () => {
    const { wb } = await signingIn()
    return wb.send('POST /auth/device/token', {})
  },
  invalid_callback: async () => {
    const { browser } = await signingIn()
    return browser.send('GET /auth/callback')
  },
  invalid_state: async () => {
    const { browser } = await signingIn()
    return browser.send('GET /auth/callback?code=code&state=state')
  },
  not_configured: async () => (await serveOverHttp(await open())).send('GET /auth/login'),
  token_exchange_failed: () => loggedIn({}, line => line.replace(/code=[^&]*/, 'code=wrong')),
  token_validation_failed: async () => {
    const { browser, provider } = await signedIn()
    interceptProvider(provider, ({ path }) =>
      path === '/token'
        ? { status: 200, body: JSON.stringify({ access_token: 'opaque', token_type: 'Bearer' }) }
        : undefined,
    )
    return browser.send('POST /auth/refresh')
  },
  session_too_large: () => loggedIn({ provider: { paddingChars: 11_000 } }),
  identity_provider_unavailable: async () => {
    const { provider, browser } = await signingIn()
    await provider.stop()
    return browser.send('GET /auth/login')
  },
  no_refresh_token: async () => {
    const { browser } = await signingIn()
    return browser.send('POST /auth/refresh')
  },
  refresh_failed: async () => {
    const { provider, browser } = await signedIn()
    tokenAnswers(provider, 400, 'invalid_grant')
    return browser.send('POST /auth/refresh')
  },
  device_flow_not_supported: async () => {
    const { wb } = await signingIn({ provider: { device: false } })
    return wb.send('POST /auth/device/authorize')
  },
  device_authorize_failed: async () => {
    const { provider, wb } = await signingIn()
    interceptProvider(provider, ({ path }) =>
      path === '/device/auth' ? { status: 400, body: '{"error":"invalid_scope"}' } : undefined,
    )
    return wb.send('POST /auth/device/authorize')
  },
  device_token_failed: async () => {
    const { provider, wb } = await signingIn()
    tokenAnswers(provider, 401, 'invalid_client')
    return wb.send('POST /auth/device/token', { device_code: 'code' })
  },
} satisfies Provocations
