import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { audience, clients, startProvider } from '../harness/identity-provider.ts'

const bootstrap = 'bootstrap-token-of-a-test-of-48-characters-long'

/** A provider that signs people in, and configurations of servers that use it; gone with the tests of the file. */
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
    /** Of a server with such a configuration. */
    env: {
      BOOTSTRAP: bootstrap,
      SESSION: 'session-secret-of-a-test-of-32-bytes-and-more',
      CLIENT: clients.confidential.secret,
    },
    /** The flags that name a configuration as a file; JSON is YAML. */
    configured(name: string, auth: object): string[] {
      const path = join(home, `${name}.yaml`)
      writeFileSync(path, JSON.stringify({ version: 1, auth }))
      return ['--config', path]
    },
    /** `auth` of a server where people, keys and the bootstrap token come in. */
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
