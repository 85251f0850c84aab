import { z } from 'zod'
import type { ErrorCode } from './errors.ts'
import { limits } from './limits.ts'
import { placePayloadKeys, sectionPayloadKey, tableHeadsPayloadKey } from './payload-keys.ts'

/** Payload key of the owner of a document. It is not part of responses. */
export const ownerPayloadKey = '$owner'
/** Payload key of the file name of a document. It is not part of responses. */
export const sourcePayloadKey = '$source'
/**
 * Payload key of the status of a document whose metadata does not contain the key `status`. It is not part of responses.
 */
export const statusPayloadKey = '$status'
/** Payload key of the offset of a chunk in the text of its document, in UTF-16 code units. It is not part of responses. */
export const startPayloadKey = '$start'

/**
 * Payload key of the places of a file that start inside a chunk, after its start, such as pages. It is not part of responses.
 */
export const placesPayloadKey = '$places'
/**
 * Payload keys of the text before a chunk, and after the last one, that is in no chunk, such as white space. They are not part
 * of responses.
 */
export const gapPayloadKeys = { before: '$before', after: '$after' } as const

/**
 * Payload keys that ingest writes. They are rejected in metadata and record payloads, so that clients cannot
 * forge the visibility of a document.
 */
export const reservedPayloadKeys: ReadonlySet<string> = new Set([
  'knowledgeBaseId',
  'documentId',
  'chunkIndex',
  'chunkText',
  'visible_to',
  'chunker.id',
  sectionPayloadKey,
  tableHeadsPayloadKey,
  ...Object.values(placePayloadKeys),
  ownerPayloadKey,
  sourcePayloadKey,
  statusPayloadKey,
  startPayloadKey,
  placesPayloadKey,
  ...Object.values(gapPayloadKeys),
])

/** Returns a schema for a string of 1 to `max` UTF-16 code units. */
export function boundedText(max: number) {
  return z
    .string()
    .refine(text => text.length >= 1 && text.length <= max, `must be 1 to ${max} characters long`)
    .meta({ minLength: 1, maxLength: max })
}

/** Returns a schema for a string of at most `max` UTF-16 code units, or null. */
export function optionalTextUpTo(max: number) {
  return z
    .string()
    .refine(text => text.length <= max, `must be at most ${max} characters long`)
    .meta({ maxLength: max })
    .nullable()
}

export const isoTimestamp = z.iso.datetime({ precision: 3 })

/** Date and time in UTC from a client, normalized to milliseconds. */
export const timestampInput = z.iso.datetime().transform(text => new Date(text).toISOString())

/**
 * Reference to a secret: `env:NAME`, `file:/absolute/path` or `astra-cli:profile:database:part`. Never the
 * secret itself.
 */
export const secretRef = z
  .string()
  .regex(
    /^(?:env:[A-Za-z_][A-Za-z0-9_]*|file:\/(?!.*(?:^|\/)\.\.(?:\/|$)).+|astra-cli:[^:]+:[^:]+:(?:token|endpoint))$/,
    'must be a secret reference: env:NAME or file:/absolute/path',
  )

type MetadataValue = string | number | boolean | null

function issueCode(code: ErrorCode) {
  return { code }
}

function isScalar(value: unknown): value is MetadataValue {
  return value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value)
}

/** Returns a schema that reports invalid values with an error code instead of `validation_error`. */
export function withErrorCode<S extends z.ZodType>(schema: S, code: ErrorCode) {
  return z.unknown().transform((value, context): z.output<S> => {
    const result = schema.safeParse(value)
    if (result.success) return result.data
    const { path, message } = result.error.issues[0]!
    context.addIssue({ code: 'custom', path: [...path], message, params: issueCode(code) })
    return z.NEVER
  })
}

/** Reports the first reserved key of a map. Returns true if there is a reserved key. */
function rejectReservedKeys(map: object, context: z.RefinementCtx): boolean {
  const reserved = Object.keys(map).find(key => reservedPayloadKeys.has(key))
  if (reserved === undefined) return false
  context.addIssue({
    code: 'custom',
    path: [reserved],
    message: 'is a reserved key',
    params: issueCode('invalid_metadata'),
  })
  return true
}

/**
 * Flat metadata of a document.
 *
 * @see docs/requirements.md#S7.3-07
 */
export const metadata = z
  .custom<Record<string, MetadataValue>>(
    value => typeof value === 'object' && value !== null && !Array.isArray(value),
    {
      error: 'must be an object',
      params: issueCode('invalid_metadata'),
    },
  )
  .superRefine((map, context) => {
    if (rejectReservedKeys(map, context)) return
    const nested = Object.keys(map).find(key => !isScalar(map[key]))
    if (nested !== undefined)
      context.addIssue({
        code: 'custom',
        path: [nested],
        message: 'must be a string, a number, a boolean or null',
        params: issueCode('invalid_metadata'),
      })
    else if (JSON.stringify(map).length > limits.metadataChars)
      context.addIssue({
        code: 'custom',
        message: `must be at most ${limits.metadataChars} characters long as JSON`,
        params: issueCode('invalid_metadata'),
      })
  })
  .meta({ type: 'object', additionalProperties: { type: ['string', 'number', 'boolean', 'null'] } })

/** Payload of a record that a client stores directly: any JSON object without reserved keys. */
export const payload = z
  .custom<Record<string, unknown>>(
    value => typeof value === 'object' && value !== null && !Array.isArray(value),
    {
      error: 'must be an object',
    },
  )
  .superRefine((map, context) => {
    rejectReservedKeys(map, context)
  })
  .meta({ type: 'object', additionalProperties: true })

/**
 * ID of a principal, chosen by its workspace.
 *
 * @see docs/access.md
 */
export const principalId = z
  .string()
  .regex(/^[A-Za-z0-9._@:+-]{1,128}$/, `must be 1 to ${limits.principalIdChars} of A-Z a-z 0-9 . _ @ : + -`)

/** ID of a principal in a query. A user that the workspace has not recorded can have a longer ID than a recorded principal. */
export const principalIdFilter = boundedText(limits.subjectChars)

/** IDs of the principals that can see a document. `*` means everyone. */
export const visibleTo = z
  .custom<string[]>(
    value =>
      Array.isArray(value) && value.length > 0 && value.every(id => typeof id === 'string' && id.length > 0),
    { error: 'must be a non-empty array of principal IDs or "*"', params: issueCode('invalid_visible_to') },
  )
  .refine(ids => ids.length <= limits.visibleToEntries && ids.every(id => id.length <= limits.subjectChars), {
    error: `must have at most ${limits.visibleToEntries} entries of at most ${limits.subjectChars} characters`,
    params: issueCode('invalid_visible_to'),
  })
  .transform(ids => [...new Set(ids)].sort())
  .meta({
    type: 'array',
    items: { type: 'string', minLength: 1, maxLength: limits.subjectChars },
    minItems: 1,
    maxItems: limits.visibleToEntries,
  })

/**
 * Array of finite numbers that fit into 32-bit floats. One function checks the whole array, because a body can
 * contain hundreds of thousands of numbers. The parsed value is a typed array, because threads exchange these faster.
 */
export const vector = z
  .custom<number[]>(isVector, { error: `must be 1 to ${limits.vectorLength} finite numbers` })
  .transform(numbers => new Float32Array(numbers))
  .meta({ type: 'array', items: { type: 'number' }, minItems: 1, maxItems: limits.vectorLength })

function isVector(value: unknown): boolean {
  if (!Array.isArray(value) || value.length < 1 || value.length > limits.vectorLength) return false
  return value.every(entry => typeof entry === 'number' && Number.isFinite(Math.fround(entry)))
}

/**
 * Filter on payload fields. The filter parser checks its syntax.
 *
 * @see docs/http.md#filters
 */
export const filter = z
  .custom<Record<string, unknown>>(
    value => typeof value === 'object' && value !== null && !Array.isArray(value),
    {
      error: 'must be an object',
    },
  )
  .meta({ id: 'Filter', type: 'object', additionalProperties: true })
