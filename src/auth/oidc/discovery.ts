import {
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretPost,
  Configuration,
  clockTolerance,
  customFetch,
  None,
  type ServerMetadata,
} from 'openid-client'
import { isLoopback } from '../../base/loopback.ts'
import type { OidcConfig } from './protocol.ts'
import { type ProviderFetch, ProviderUnavailable } from './provider-fetch.ts'
import { discoveryUrl, isSafeTransport } from './transport.ts'

/** Discovered metadata of a provider. */
export interface DiscoveredProvider {
  readonly configuration: Configuration
  readonly metadata: ServerMetadata
}

/**
 * Loads the discovery document of a provider, and checks it against the configuration.
 *
 * @throws NoAnswer  when the document cannot be loaded, or does not match
 * @see OpenID Connect Discovery 4
 */
export async function discoverProvider(parts: {
  oidc: OidcConfig
  clientSecret: string | undefined
  ask: ProviderFetch
}): Promise<DiscoveredProvider> {
  const { oidc, clientSecret, ask } = parts
  const metadata = await configuredMetadata(oidc, ask)
  const configuration = new Configuration(
    metadata,
    // Without a client, only the metadata is used.
    oidc.client?.clientId ?? 'none',
    { [clockTolerance]: oidc.clockToleranceSeconds },
    clientSecret === undefined ? None() : secretAuthentication(clientSecret),
  )
  configuration[customFetch] = ask
  if (isLoopback(new URL(oidc.issuer).hostname)) allowInsecureRequests(configuration)
  return { configuration, metadata }
}

async function configuredMetadata(
  { issuer, jwksUri, client }: OidcConfig,
  ask: ProviderFetch,
): Promise<ServerMetadata> {
  const answer = await ask(discoveryUrl(issuer), { headers: { accept: 'application/json' } })
  if (answer.status !== 200) throw new ProviderUnavailable(`it answered with status ${answer.status}`)
  const metadata = (await answer.json().catch(() => null)) as Partial<ServerMetadata> | null
  if (typeof metadata?.issuer !== 'string')
    throw new ProviderUnavailable('its answer is not a discovery document')
  if (metadata.issuer !== issuer)
    throw new ProviderUnavailable(
      `it names itself ${JSON.stringify(metadata.issuer.slice(0, issuerCharsShown))}`,
    )
  const required = [
    ...(jwksUri === null ? ['jwks_uri'] : []),
    ...(client ? ['authorization_endpoint', 'token_endpoint'] : []),
  ]
  const missing = required.find(name => !isSafeTransport(metadata[name]))
  if (missing) throw new ProviderUnavailable(`its discovery document has no https URL as ${missing}`)
  return metadata as ServerMetadata
}

/** Maximum number of characters of a wrong issuer to show. */
const issuerCharsShown = 200

/**
 * Returns the client authentication with a secret. The secret is sent in the header, which every provider
 * supports, unless the provider supports only the body.
 *
 * The library would encode `-` as `%2D`. This encoding leaves usual characters unchanged, for providers that
 * do not decode the header.
 *
 * @see RFC 6749 section 2.3.1
 */
function secretAuthentication(secret: string): ClientAuth {
  const inBody = ClientSecretPost(secret)
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported
    const onlyBody = methods?.includes('client_secret_post') && !methods.includes('client_secret_basic')
    if (onlyBody) return inBody(server, client, body, headers)
    const pair = Buffer.from(`${formEncoded(client.client_id)}:${formEncoded(secret)}`)
    headers.set('authorization', `Basic ${pair.toString('base64')}`)
  }
}

function formEncoded(text: string): string {
  return new URLSearchParams({ _: text }).toString().slice(2)
}
