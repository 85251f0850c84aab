import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { onTestFinished } from 'vitest'

/** Creates the discovery document of an identity provider, as far as startup reads it. */
export async function startDiscoveryServer(more: object = {}): Promise<string> {
  const server = createServer((_, response) => {
    const issuer = issuerOf(server)
    const endpoints = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
    }
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ ...endpoints, ...more }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return issuerOf(server)
}

function issuerOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Creates the configuration of a runtime that accepts only tokens of an identity provider. */
export function oidcConfig(issuer: string): string {
  const oidc = `{ issuer: "${issuer}", audience: api, client: { clientId: wb } }`
  return `version: 1\nauth: { mode: oidc, anonymousPolicy: reject, oidc: ${oidc} }\n`
}
