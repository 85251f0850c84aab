import { onTestFinished } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import {
  audience,
  CookieJar,
  clients,
  type Drive,
  drive,
  type ProviderOptions,
  type RunningProvider,
  startProvider,
} from '../../harness/identity-provider.ts'
import { type Opened, type Options, open, type Sent } from '../../harness/runtime.ts'

export const secrets = {
  first: 'first-session-secret-of-32-bytes-or-more',
  second: 'second-session-secret-of-32-bytes-or-more',
} as const

/** Where the runtimes of these tests are, for a browser. */
export const site = 'http://localhost'

export interface StageOptions extends Omit<Options, 'config'> {
  provider?: RunningProvider | ProviderOptions
  client?: object
  oidc?: object
  auth?: object
  runtime?: object
}

export interface Stage {
  readonly provider: RunningProvider
  readonly opened: Opened
  /** A new browser. */
  browser(): Browser
  /** A runtime over the same data directory and provider, after the first was closed. */
  restart(options?: StageOptions): Promise<Stage>
}

/** A provider, and a runtime that signs in with it. */
export async function stage(options: StageOptions = {}): Promise<Stage> {
  const { provider: given, client, oidc, auth, runtime, environment, ...rest } = options
  const provider = given && 'issuer' in given ? given : await startProvider(given)
  const opened = await open({
    ...rest,
    environment: { SESSION_1: secrets.first, SESSION_2: secrets.second, ...environment },
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
      return stage({ ...options, ...more, provider, dataDir: opened.dataDir })
    },
  }
}

/** A browser at a runtime of this process. */
export class Browser {
  readonly jar = new CookieJar()
  headers: Record<string, string> = {}

  constructor(private readonly opened: Pick<Opened, 'send'>) {}

  get cookies(): string {
    return this.jar.header(new URL('/', site))
  }

  async send(line: string): Promise<Sent> {
    const [method, path] = line.split(' ') as [string, string]
    const url = new URL(path, site)
    const cookie = this.jar.header(url)
    const answer = await this.opened.send(line, undefined, {
      ...this.headers,
      ...(cookie && { cookie }),
      // As browsers do with a request of their own page.
      ...(method === 'POST' && { origin: site }),
    })
    this.jar.take(url, answer.headers)
    return answer
  }

  /** From the login to the identity provider's page and back: where it is sent back to, not yet asked for. */
  async comeBack(options: Drive & { after?: string; to?: string } = {}): Promise<string> {
    const { to = '/auth/callback' } = options
    const query = options.after === undefined ? '' : `?redirect_after=${encodeURIComponent(options.after)}`
    const begun = await this.send(`GET /auth/login${query}`)
    const { url } = await drive(begun.headers.get('location')!, {
      ...options,
      stopAt: `${site}${to}`,
    })
    const { pathname, search } = new URL(url)
    return `GET ${pathname}${search}`
  }

  async signIn(options: Drive & { after?: string } = {}): Promise<Sent> {
    return this.send(await this.comeBack(options))
  }
}

/** The time of this machine, and more. */
export class LaterClock implements Clock {
  offsetMs = 0
  now = () => systemClock.now() + this.offsetMs
  after = systemClock.after
}

/** Stand before a provider for the rest of the test. */
export function stand(provider: RunningProvider, front: RunningProvider['front']): void {
  provider.front = front
  onTestFinished(() => {
    provider.front = () => undefined
  })
}

/** The code of a refusal. */
export function codeOf({ body }: Sent): string | undefined {
  return (body.error as { code?: string } | undefined)?.code
}
