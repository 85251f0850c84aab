import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import {
  audience,
  type BrowserOptions,
  browse,
  CookieJar,
  clients,
  type ProviderOptions,
  type RunningProvider,
  startProvider,
} from '../../harness/identity-provider.ts'
import { open, type TestResponse, type TestRuntime, type TestRuntimeOptions } from '../../harness/runtime.ts'

export const sessionSecrets = {
  first: 'first-session-secret-of-32-bytes-or-more',
  second: 'second-session-secret-of-32-bytes-or-more',
} as const

/** Origin of the runtimes in these tests. */
export const siteOrigin = 'http://localhost'

export interface SignInFixtureOptions extends Omit<TestRuntimeOptions, 'config'> {
  provider?: RunningProvider | ProviderOptions
  client?: object
  oidc?: object
  auth?: object
  runtime?: object
}

export interface SignInFixture {
  readonly provider: RunningProvider
  readonly opened: TestRuntime
  /** Creates a browser without cookies. */
  browser(): Browser
  /** Closes the runtime and opens another one with the same data directory and provider. */
  restart(options?: SignInFixtureOptions): Promise<SignInFixture>
}

/** Starts a provider and opens a runtime that uses it for sign-in. */
export async function openSignInFixture(options: SignInFixtureOptions = {}): Promise<SignInFixture> {
  const { provider: given, client, oidc, auth, runtime, environment, ...rest } = options
  const provider = given && 'issuer' in given ? given : await startProvider(given)
  const opened = await open({
    ...rest,
    environment: { SESSION_1: sessionSecrets.first, SESSION_2: sessionSecrets.second, ...environment },
    config: {
      ...(runtime && { runtime }),
      auth: {
        mode: 'oidc',
        anonymousPolicy: 'reject',
        oidc: {
          issuer: provider.issuer,
          audience,
          client: { clientId: clients.public.id, sessionSecretRef: 'env:SESSION_1', ...client },
          ...oidc,
        },
        ...auth,
      },
    },
  })
  return {
    provider,
    opened,
    browser: () => new Browser(opened),
    async restart(more = {}) {
      await opened.close()
      return openSignInFixture({ ...options, ...more, provider, dataDir: opened.dataDir })
    },
  }
}

/** A browser that sends requests to an in-process runtime. */
export class Browser {
  readonly jar = new CookieJar()
  headers: Record<string, string> = {}

  constructor(private readonly opened: Pick<TestRuntime, 'send'>) {}

  get cookies(): string {
    return this.jar.header(new URL('/', siteOrigin))
  }

  async send(line: string): Promise<TestResponse> {
    const [method, path] = line.split(' ') as [string, string]
    const url = new URL(path, siteOrigin)
    const cookie = this.jar.header(url)
    const answer = await this.opened.send(line, undefined, {
      ...this.headers,
      ...(cookie && { cookie }),
      // Browsers send the origin with a POST request.
      ...(method === 'POST' && { origin: siteOrigin }),
    })
    this.jar.storeCookies(url, answer.headers)
    return answer
  }

  /** Signs in at the provider and returns the callback request without sending it. */
  async returnFromProvider(options: BrowserOptions & { after?: string; to?: string } = {}): Promise<string> {
    const { to = '/auth/callback' } = options
    const query = options.after === undefined ? '' : `?redirect_after=${encodeURIComponent(options.after)}`
    const begun = await this.send(`GET /auth/login${query}`)
    const { url } = await browse(begun.headers.get('location')!, {
      ...options,
      stopAt: `${siteOrigin}${to}`,
    })
    const { pathname, search } = new URL(url)
    return `GET ${pathname}${search}`
  }

  async signIn(options: BrowserOptions & { after?: string } = {}): Promise<TestResponse> {
    return this.send(await this.returnFromProvider(options))
  }
}

/** A clock ahead of the system time by `offsetMs`. */
export class OffsetClock implements Clock {
  offsetMs = 0
  now = () => systemClock.now() + this.offsetMs
  after = systemClock.after
}

/** Answers requests to the provider with `front` for the rest of the test. */
export function interceptProvider(provider: RunningProvider, front: RunningProvider['intercept']): void {
  provider.intercept = front
  onTestFinished(() => {
    provider.intercept = () => undefined
  })
}

/** Returns the error code of a response. */
export function codeOf({ body }: TestResponse): string | undefined {
  return (body.error as { code?: string } | undefined)?.code
}
