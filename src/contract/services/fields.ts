import { z } from 'zod'
import { isEndpointUrl } from '../endpoint.ts'
import { boundedText, isoTimestamp, optionalTextUpTo, secretRef } from '../fields.ts'
import { limits } from '../limits.ts'

export const nullableText = z.string().nullable()
export const nullableFlag = z.boolean().nullable()
export const nullablePositive = z.int().positive().nullable()
export const nullableNonnegative = z.int().nonnegative().nullable()
export const nullableNumber = z.number().nullable()

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
  .refine(
    isEndpointUrl,
    'must be an http(s) URL without user information, with a host that the runtime may call',
  )

const endpointPath = z
  .string()
  .regex(/^\/[^\u0000-\u001f\u007f]*$/, 'must start with / and must not contain control characters')
  .refine(path => !path.split('/').includes('..'), 'must not contain ..')
  .nullable()

/** Fields of all kinds of services. */
export const sharedServiceFields = {
  name: z.string().min(1),
  description: nullableText,
  status: z.enum(['active', 'deprecated', 'experimental']),
  endpointBaseUrl: endpointUrl.nullable(),
  endpointPath,
  requestTimeoutMs: nullablePositive,
  authType: z.enum(['none', 'api_key', 'oauth2', 'mTLS']),
  credentialRef: secretRef.nullable(),
}
/** Fields with length limits. The limits apply only to requests, because older stored records can exceed them. */
export const sharedServicePatch = {
  name: boundedText(limits.nameChars),
  description: optionalTextUpTo(limits.descriptionChars),
  requestTimeoutMs: z.int().positive().max(limits.requestTimeoutMs).nullable(),
}
export const sharedServiceCreate = {
  ...sharedServiceFields,
  name: sharedServicePatch.name,
  description: sharedServicePatch.description.default(null),
  status: sharedServiceFields.status.default('active'),
  endpointBaseUrl: sharedServiceFields.endpointBaseUrl.default(null),
  endpointPath: endpointPath.default(null),
  requestTimeoutMs: sharedServicePatch.requestTimeoutMs.default(null),
  authType: sharedServiceFields.authType.default('none'),
  credentialRef: sharedServiceFields.credentialRef.default(null),
}

const sortedSet = z.array(z.string()).transform(entries => [...new Set(entries)].sort())
/** Languages and content types that a model supports. */
export const modelContentFields = { supportedLanguages: sortedSet, supportedContent: sortedSet }
export const modelContentCreate = {
  supportedLanguages: sortedSet.default([]),
  supportedContent: sortedSet.default([]),
}

/** Text for the API reference of operations that decide where documents are sent. */
export const destinationAccess = 'With row-level access, this also requires the scope `manage:access`.'

/** Fields that the runtime sets, for all kinds of services. */
export const serviceSystemFields = { workspaceId: z.uuid(), createdAt: isoTimestamp, updatedAt: isoTimestamp }

/** Reason why a service cannot be used, as far as the runtime can detect it without a request to the provider. */
export const ServiceProblem = z.object({ message: z.string(), hint: z.string() })
export type ServiceProblem = z.output<typeof ServiceProblem>

/** Response field with the problem of a service. It is present only if the query requests it. */
export const withProblem = {
  problem: ServiceProblem.nullable().optional().meta({
    description:
      'Reason why the service cannot be used, such as a missing credential or release. Null if no problem is known. Present only if `includeProblem` was `true`.',
  }),
}
export const problemQuery = z.object({
  includeProblem: z.string().optional().meta({
    description: '`true` adds the field `problem`; the provider is not called',
  }),
})

/** Body of requests that create or change a service. Unknown fields are ignored and reported. */
export const serviceBody = { kind: 'json', mode: 'lenient', limitBytes: limits.jsonBodyBytes } as const
