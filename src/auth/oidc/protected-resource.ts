import type { Handlers } from '../../access/caller.ts'
import { usesOidc } from '../../config/config-checks.ts'
import type { Config } from '../../config/schema.ts'
import { WbError } from '../../contract/errors.ts'
import {
  metadataPath,
  type ProtectedResource,
  type protectedResources,
} from '../../contract/protected-resource.ts'
import { grantsScope, type Scope } from '../../contract/scopes.ts'

const mcpEndpoint = /^\/api\/v1\/workspaces\/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/mcp$/i

function mcpPathOf(workspaceId: string): string {
  return `/api/v1/workspaces/${workspaceId}/mcp`
}

/**
 * OAuth metadata that describes the MCP endpoints as protected resources. URLs are based on
 * `runtime.publicOrigin`, because request headers can be forged.
 *
 * @see RFC 9728, RFC 6750 section 3
 */
export class ProtectedResources {
  readonly #origin: string
  readonly #issuer: string
  readonly #scopes: readonly Scope[]
  /** Scopes that the provider needs to identify the user. */
  readonly #identityScopes: readonly string[]

  constructor(publicOrigin: string, { issuer, scopes, client }: NonNullable<Config['auth']['oidc']>) {
    this.#origin = new URL(publicOrigin).origin
    this.#issuer = issuer
    this.#scopes = scopes
    this.#identityScopes = client?.scopes ?? ['openid']
  }

  /** @param path  path of the resource; empty for the runtime itself */
  metadata(path: string): ProtectedResource {
    return {
      resource: this.#origin + path,
      resource_name: 'Workbase',
      authorization_servers: [this.#issuer],
      bearer_methods_supported: ['header'],
      scopes_supported: [...this.#identityScopes, ...this.#scopes],
    }
  }

  /**
   * Returns the `WWW-Authenticate` header of a 401 response at a path; undefined if the path is not an MCP
   * endpoint.
   */
  unauthorizedChallenge(path: string, hasCredential: boolean): string | undefined {
    if (!mcpEndpoint.test(path)) return undefined
    return this.#challenge(path, hasCredential ? ['error="invalid_token"'] : [])
  }

  /**
   * Returns the `WWW-Authenticate` header of a 403 response for a missing scope; undefined if the provider does not
   * issue tokens with a sufficient scope.
   */
  insufficientScopeChallenge(workspaceId: string, required: Scope): string | undefined {
    const sufficient = this.#scopes.filter(scope => grantsScope([scope], required))
    const scope = sufficient.includes(required) ? required : sufficient[0]
    const path = mcpPathOf(workspaceId)
    return scope && this.#challenge(path, ['error="insufficient_scope"', `scope="${scope}"`])
  }

  #challenge(path: string, parameters: readonly string[]): string {
    const metadata = `resource_metadata="${this.#origin}${metadataPath}${path}"`
    return `Bearer ${[...parameters, metadata].join(', ')}`
  }
}

/** Returns the metadata; undefined unless an identity provider, `runtime.publicOrigin` and MCP are configured. */
export function openProtectedResources({ auth, runtime, mcp }: Config): ProtectedResources | undefined {
  const { oidc } = auth
  if (!usesOidc(auth) || !oidc || runtime.publicOrigin === null || !mcp.enabled) return undefined
  return new ProtectedResources(runtime.publicOrigin, oidc)
}

export function protectedResourceHandlers(
  resources: ProtectedResources | undefined,
): Handlers<typeof protectedResources> {
  const respond = (path: string) => {
    if (!resources)
      throw new WbError('not_configured', 'this runtime is not an OAuth protected resource', {
        hint: 'Set auth.oidc, an auth.mode that uses it, runtime.publicOrigin and mcp.enabled.',
      })
    return { status: 200 as const, body: resources.metadata(path) }
  }
  return {
    runtime: () => respond(''),
    mcp: ({ params }) => respond(mcpPathOf(params.resourceId)),
  }
}
