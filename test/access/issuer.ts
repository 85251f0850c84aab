import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { Clock } from '../../src/base/clock.ts'
import type { Role } from '../../src/contract/scopes.ts'

/** Opens an identity provider that serves only a key set, with a function to sign access tokens. */
export async function openIssuer(clock: Clock) {
  const [url, audience, kid] = ['https://idp.example', 'workbase', 'signing-key']
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const keySet = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }] }
  return {
    url,
    audience,
    fetch: async () => Response.json(keySet),
    sign({
      workspaces,
      role,
      lastsMs = 86_400_000,
    }: {
      workspaces: string[] | null
      role?: Role
      lastsMs?: number
    }) {
      const nowSeconds = Math.floor(clock.now() / 1_000)
      return new SignJWT({
        email: 'someone@example.com',
        wb_workspace_scopes: workspaces,
        ...(role && { role }),
      })
        .setProtectedHeader({ alg: 'ES256', kid })
        .setIssuer(url)
        .setAudience(audience)
        .setSubject('someone')
        .setIssuedAt(nowSeconds)
        .setExpirationTime(nowSeconds + lastsMs / 1_000)
        .sign(privateKey)
    },
  }
}
