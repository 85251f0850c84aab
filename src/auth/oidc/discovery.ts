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

/** Discovered metadata of a provider, and the library's configuration that contains it. */
export interface DiscoveredProvider {
  readonly configuration: Configuration
  readonly metadata: ServerMetadata
}

/**
 * Loads the discovery document of a provider, and checks it against the configuration.
 *
 * @throws ProviderUnavailable  when the document cannot be loaded, or does not match
 * @see OpenID Connect Discovery 4
 */
export async function discoverProvider(deps: {
  oidc: OidcConfig
  clientSecret: string | undefined
  fetchProvider: ProviderFetch
}): Promise<DiscoveredProvider> {
  const { oidc, clientSecret, fetchProvider } = deps
  const metadata = await loadMetadata(oidc, fetchProvider)
  const configuration = new Configuration(
    metadata,
    // This client ID is never sent: if no client is configured, only the metadata is used.
    oidc.client?.clientId ?? 'none',
    { [clockTolerance]: oidc.clockToleranceSeconds },
    clientSecret === undefined ? None() : secretAuthentication(clientSecret),
  )
  configuration[customFetch] = fetchProvider
  if (isLoopback(new URL(oidc.issuer).hostname)) allowInsecureRequests(configuration)
  return { configuration, metadata }
}

async function loadMetadata(
  { issuer, jwksUri, client }: OidcConfig,
  fetchProvider: ProviderFetch,
): Promise<ServerMetadata> {
  const response = await fetchProvider(discoveryUrl(issuer), { headers: { accept: 'application/json' } })
  if (response.status !== 200) throw new ProviderUnavailable(`it responded with status ${response.status}`)
  const metadata = (await response.json().catch(() => null)) as Partial<ServerMetadata> | null
  if (typeof metadata?.issuer !== 'string')
    throw new ProviderUnavailable('its response is not a discovery document')
  if (metadata.issuer !== issuer)
    throw new ProviderUnavailable(
      `its issuer is ${JSON.stringify(metadata.issuer.slice(0, shownIssuerCharsMax))}`,
    )
  const required = [
    ...(jwksUri === null ? ['jwks_uri'] : []),
    ...(client ? ['authorization_endpoint', 'token_endpoint'] : []),
  ]
  const missing = required.find(name => !isSafeTransport(metadata[name]))
  if (missing) throw new ProviderUnavailable(`its discovery document has no https URL for ${missing}`)
  return metadata as ServerMetadata
}

/** Maximum number of characters of an unexpected issuer in an error message. */
const shownIssuerCharsMax = 200

/**
 * Returns a function that authenticates the client with a secret. The secret is sent in the header, unless the
 * provider supports only the body.
 *
 * The library would encode `-` as `%2D` in the header. This function leaves such characters unchanged, because some
 * providers do not decode the header.
 *
 * @see RFC 6749 section 2.3.1
 */
function secretAuthentication(secret: string): ClientAuth {
  const inBody = ClientSecretPost(secret)
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported
    const onlyBody = methods?.includes('client_secret_post') && !methods.includes('client_secret_basic')
    if (onlyBody) return inBody(server, client, body, headers)
    const pair = Buffer.from(`${encodeFormValue(client.client_id)}:${encodeFormValue(secret)}`)
    headers.set('authorization', `Basic ${pair.toString('base64')}`)
  }
}

function encodeFormValue(text: string): string {
  return new URLSearchParams({ _: text }).toString().slice(2)
}
