import { z } from 'zod'
import { openToAll } from './access.ts'
import { route } from './route.ts'

/** OAuth protected resource metadata (RFC 9728 section 2). */
const ProtectedResource = z.object({
  resource: z.string().meta({ description: 'URL of the resource; starts with `runtime.publicOrigin`' }),
  resource_name: z.string(),
  authorization_servers: z
    .array(z.string())
    .meta({ description: 'issuers whose access tokens the resource accepts' }),
  bearer_methods_supported: z.array(z.literal('header')),
  scopes_supported: z.array(z.string()).meta({
    description: 'scopes to request: the scopes of `auth.oidc.client`, then those of `auth.oidc.scopes`',
  }),
})
export type ProtectedResource = z.output<typeof ProtectedResource>

export const metadataPath = '/.well-known/oauth-protected-resource'

const sharedDeclaration = {
  method: 'GET',
  access: openToAll,
  replies: { 200: ProtectedResource },
  errors: ['not_configured'],
} as const

/**
 * Routes for the metadata with which OAuth clients find the identity provider.
 *
 * @see docs/mcp.md#sign-in-with-oauth
 */
export const protectedResources = {
  runtime: route({
    ...sharedDeclaration,
    path: metadataPath,
    summary: 'Describe the runtime as an OAuth protected resource',
  }),
  mcp: route({
    ...sharedDeclaration,
    path: `${metadataPath}/api/v1/workspaces/:resourceId/mcp`,
    summary: 'Describe the MCP endpoint of a workspace as an OAuth protected resource',
    description:
      '`resourceId` is the ID of the workspace. The response does not reveal whether the workspace exists.',
  }),
}
