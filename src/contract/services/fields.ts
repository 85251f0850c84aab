import { z } from 'zod'
import { isEndpointUrl } from '../endpoint.ts'
import { boundedText, secretRef, textUpTo, timestamp } from '../fields.ts'
import { limits } from '../limits.ts'

export const text = z.string().nullable()
export const flag = z.boolean().nullable()
export const atLeastOne = z.int().positive().nullable()
export const atLeastZero = z.int().nonnegative().nullable()
export const anyNumber = z.number().nullable()

/**
 * Address of a model provider.
 *
 * @see docs/http.md#addresses-of-services
 */
export const endpointUrl = z
  .string()
  .refine(
    text => text.length <= limits.endpointUrlChars,
    `must be at most ${limits.endpointUrlChars} characters long`,
  )
  .refine(isEndpointUrl, 'must be an http(s) URL without user information, of a host that may be called')

const endpointPath = z
  .string()
  .regex(/^\/[^\u0000-\u001f\u007f]*$/, 'must start with / and hold no control characters')
  .refine(path => !path.split('/').includes('..'), 'must not contain ..')
  .nullable()

/** Fields of all kinds of services. */
export const shared = {
  name: z.string().min(1),
  description: text,
  status: z.enum(['active', 'deprecated', 'experimental']),
  endpointBaseUrl: endpointUrl.nullable(),
  endpointPath,
  requestTimeoutMs: atLeastOne,
  authType: z.enum(['none', 'api_key', 'oauth2', 'mTLS']),
  credentialRef: secretRef.nullable(),
}
/** Limits apply only to requests, because stored records can be older than the limits. */
export const sharedPatch = {
  name: boundedText(limits.nameChars),
  description: textUpTo(limits.descriptionChars),
}
export const sharedCreate = {
  ...shared,
  name: sharedPatch.name,
  description: sharedPatch.description.default(null),
  status: shared.status.default('active'),
  endpointBaseUrl: shared.endpointBaseUrl.default(null),
  endpointPath: endpointPath.default(null),
  requestTimeoutMs: atLeastOne.default(null),
  authType: shared.authType.default('none'),
  credentialRef: shared.credentialRef.default(null),
}

const sortedSet = z.array(z.string()).transform(entries => [...new Set(entries)].sort())
/** Languages and content types that a model supports. */
export const content = { supportedLanguages: sortedSet, supportedContent: sortedSet }
export const contentCreate = {
  supportedLanguages: sortedSet.default([]),
  supportedContent: sortedSet.default([]),
}

/** Fields of all services that the runtime sets. */
export const stamps = { workspaceId: z.uuid(), createdAt: timestamp, updatedAt: timestamp }

/** Reason why a service cannot be used. The check sends no request. */
export const ServiceProblem = z.object({ message: z.string(), hint: z.string() })
export type ServiceProblem = z.output<typeof ServiceProblem>

/** Problem of a service. Present only if the query requests it. */
export const withProblem = {
  problem: ServiceProblem.nullable().optional().meta({
    description:
      'why the service cannot be used, such as a missing credential or release; null if no problem is known. Present if includeProblem was sent',
  }),
}
export const problemQuery = z.object({
  includeProblem: z.string().optional().meta({
    description: '`true` adds why the service cannot be used; the check sends no request',
  }),
})

/** Body of a change. Unknown fields are ignored and reported. */
export const json = { kind: 'json', mode: 'lenient', limitBytes: limits.jsonBodyBytes } as const
