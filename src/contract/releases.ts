import { z } from 'zod'
import { owner } from './access.ts'
import { isoTimestamp, secretRef } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

/**
 * Permission for services of a workspace, or of all workspaces, to send a secret to one host.
 *
 * @see docs/security.md#rule-1
 */
export const SecretRelease = z
  .object({
    releaseId: z.uuid(),
    ref: secretRef,
    host: z
      .string()
      .meta({ description: 'host that the secret may be sent to, with the port unless it is 443' }),
    workspaceId: z
      .uuid()
      .nullable()
      .meta({ description: 'workspace that may use the secret; null allows all workspaces' }),
    createdAt: isoTimestamp,
  })
  .meta({ id: 'SecretRelease' })
export type SecretRelease = z.output<typeof SecretRelease>

/** Host with an optional port, normalized to lowercase and without the port 443. */
const host = z
  .string()
  .refine(text => text.length <= limits.hostChars, `must be at most ${limits.hostChars} characters long`)
  .transform(text => (URL.canParse(`https://${text}`) ? new URL(`https://${text}`) : undefined))
  .refine(
    url =>
      url !== undefined &&
      url.hostname.length <= 253 &&
      /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?$/.test(url.href.slice(8, -1)),
    'must be a host name or IP address, with the port unless it is 443',
  )
  .transform(url => url!.host)
  .meta({ type: 'string', minLength: 1, maxLength: limits.hostChars })

export const SecretReleaseCreate = z.strictObject({
  ref: secretRef,
  host,
  workspaceId: z.uuid().nullable().default(null),
})
export type SecretReleaseCreate = z.output<typeof SecretReleaseCreate>

export const secretReleases = {
  list: route({
    method: 'GET',
    path: '/api/v1/secret-releases',
    summary: 'List secret releases',
    description:
      'Returns the releases that were created with the API. Releases from the configuration and default releases are not listed.',
    access: owner,
    query: pageQuery,
    replies: { 200: pageOfItems(SecretRelease) },
    errors: ['invalid_cursor'],
  }),
  create: route({
    method: 'POST',
    path: '/api/v1/secret-releases',
    summary: 'Release a secret for a host',
    access: owner,
    body: { kind: 'json', mode: 'strict', limitBytes: limits.jsonBodyBytes, schema: SecretReleaseCreate },
    replies: { 201: SecretRelease },
    errors: ['workspace_not_found', 'conflict'],
    audit: 'secret.release',
  }),
  delete: route({
    method: 'DELETE',
    path: '/api/v1/secret-releases/:releaseId',
    summary: 'Delete a secret release',
    access: owner,
    replies: { 204: null },
    errors: ['secret_release_not_found'],
    audit: 'secret.withdraw',
  }),
}
