import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { audience, clients, startProvider } from '../harness/identity-provider.ts'

const bootstrap = 'bootstrap-token-of-a-test-of-48-characters-long'

/** Starts an identity provider and servers that use it, until the tests of the file have finished. */
export async function signInPlace() {
  const home = mkdtempSync(join(tmpdir(), 'wb-sign-in-'))
  const provider = await startProvider({
    untilClosed: true,
    redirectUris: ['http://127.0.0.1/auth/callback'],
  })
  afterAll(async () => {
    await provider.close()
    rmSync(home, { recursive: true, force: true })
  })
  return {
    provider,
    bootstrap,
    /** Arguments of a server with the configuration. */
    env: {
      BOOTSTRAP: bootstrap,
      SESSION: 'session-secret-of-a-test-of-32-bytes-and-more',
      CLIENT: clients.confidential.secret,
    },
    /** Writes a configuration as a JSON file, which is valid YAML, and returns the flags that name it. */
    configured(name: string, auth: object): string[] {
      const path = join(home, `${name}.yaml`)
      writeFileSync(path, JSON.stringify({ version: 1, auth }))
      return ['--config', path]
    },
    /** `auth` of a server that accepts sign-in, API keys and the bootstrap token. */
    signingIn: (client: object = {}): object => ({
      mode: 'any',
      anonymousPolicy: 'reject',
      bootstrapTokenRef: 'env:BOOTSTRAP',
      oidc: {
        issuer: provider.issuer,
        audience,
        client: {
          clientId: clients.confidential.id,
          clientSecretRef: 'env:CLIENT',
          sessionSecretRef: 'env:SESSION',
          ...client,
        },
      },
    }),
  }
}
