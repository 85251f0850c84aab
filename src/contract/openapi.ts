import { z } from 'zod'
import type { Access } from './access.ts'
import { errorRegistry } from './errors.ts'
import { type ParamName, params } from './ids.ts'
import type { JsonSchema, OpenApi, OpenApiOperation, OpenApiResponse } from './openapi-types.ts'
import { annotate } from './reference/annotate.ts'
import { type Body, canBeEmpty, type Replies, type Route, type Topic } from './route.ts'
import type { Scope } from './scopes.ts'

export type { JsonSchema, OpenApi, OpenApiOperation } from './openapi-types.ts'

/**
 * Descriptions of the shared error responses, by status. Operations that are open to everyone return only 400 and 500
 * of these.
 */
const sharedErrorDescriptions = {
  400: 'The request is not valid.',
  401: 'The request has no valid credential.',
  403: 'The caller does not have the required permissions.',
  409: 'The request conflicts with the current state of the resource.',
  413: 'The body is too large.',
  422: 'The request is well-formed, but cannot be processed.',
  429: 'Too many requests. Wait for the number of seconds in `Retry-After`.',
  500: 'The runtime failed. Search its log for the `requestId` of this response.',
} as const

/**
 * Creates the OpenAPI 3.1 document from the declarations of all routes.
 *
 * @param api  routes by topic; the ID of an operation is `topic.operation`
 */
export function openApiDocument(api: Readonly<Record<string, Topic>>, about: { version: string }): OpenApi {
  const schemas: Record<string, JsonSchema> = { Error: errorSchema }
  const paths: OpenApi['paths'] = {}
  for (const [topic, routes] of Object.entries(api))
    for (const [name, route] of Object.entries(routes)) {
      const path = route.path.replaceAll(/:([A-Za-z]+)/g, '{$1}')
      paths[path] ??= {}
      paths[path][route.method.toLowerCase()] = operationOf(topic, name, route, schemas)
    }
  const document: OpenApi = {
    openapi: '3.1.0',
    info: {
      title: 'Workbase',
      version: about.version,
      description: 'Retrieval-backed applications: workspaces, knowledge bases, documents and search.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: Object.keys(api).map(name => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(schemas).sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: Object.fromEntries(
        Object.entries(sharedErrorDescriptions).map(([status, description]) => [
          `Error${status}`,
          failureResponse(description),
        ]),
      ),
      securitySchemes: {
        WorkbaseApiKey: { type: 'http', scheme: 'bearer', description: 'An API key of a workspace.' },
        OidcBearer: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'JWT',
          description: 'An access token from the configured identity provider.',
        },
      },
    },
  }
  annotate(document)
  return document
}

/** Returns a readable description of an access rule. */
function describeAccess(access: Access): string {
  switch (access.kind) {
    case 'open':
      return 'open to everyone'
    case 'anyCaller':
      return 'any caller, including anonymous callers if the configuration allows them'
    case 'signedIn':
      return 'an authenticated caller'
    case 'platform':
      return 'a caller with access to the whole runtime, not only to specific workspaces'
    case 'operator':
      return 'a verified caller with access to the whole runtime; if authentication is disabled, everyone'
    case 'setup':
      return 'a caller with the bootstrap token, or the owner of the data directory; if authentication is disabled, also a request without a credential from the machine of the runtime'
    case 'owner':
      return 'a verified caller with access to the whole runtime and the `manage` scope, or the owner of the data directory'
    case 'member':
      return 'a caller with access to the workspace'
    case 'ownRecords':
      return `a caller with access to the workspace; for a conversation of another caller, also the scope \`${access.scope}\` or \`${access.alternative}\``
    case 'needs':
      return `a caller with access to the workspace and the scope \`${access.scope}\`${
        access.alternative ? ` or \`${access.alternative}\`` : ''
      }${access.extraScope ? `; a request that ${access.extraScope.condition.description} also requires the scope \`${access.extraScope.scope}\`` : ''}`
  }
}

function scopesOfRule(access: Access): Scope[] {
  if (access.kind !== 'needs') return access.kind === 'ownRecords' ? [access.scope, access.alternative] : []
  return [access.scope, access.alternative, access.extraScope?.scope].filter(scope => scope !== undefined)
}

function operationOf(
  topic: string,
  name: string,
  route: Route,
  schemas: Record<string, JsonSchema>,
): OpenApiOperation {
  return {
    operationId: `${topic}.${name}`,
    summary: route.summary,
    ...(route.description ? { description: route.description } : undefined),
    tags: [topic],
    parameters: [...pathParameters(route), ...queryParameters(route, schemas)],
    ...(route.body ? { requestBody: requestBodyOf(route.body, schemas) } : undefined),
    responses: { ...repliesOf(route, schemas), ...failureResponses(route) },
    security: route.access.kind === 'open' ? [] : [{ WorkbaseApiKey: [] }, { OidcBearer: [] }, {}],
    'x-access': { rule: describeAccess(route.access), scopes: scopesOfRule(route.access) },
    'x-error-codes': [...new Set(route.errors)].sort(),
  }
}

function pathParameters({ path }: Route): OpenApiOperation['parameters'] {
  return [...path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => ({
    name: name!,
    in: 'path',
    required: true,
    schema: schemaOf(params[name as ParamName], 'input', {}),
  }))
}

function queryParameters(
  { query }: Route,
  schemas: Record<string, JsonSchema>,
): OpenApiOperation['parameters'] {
  if (!query) return []
  const { properties = {}, required = [] } = schemaOf(query, 'input', schemas)
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    ...(description ? { description } : undefined),
    schema,
  }))
}

function requestBodyOf(body: Body, schemas: Record<string, JsonSchema>): OpenApiOperation['requestBody'] {
  const required = !canBeEmpty(body)
  const schema = schemaOf(body.schema, 'input', schemas)
  return { required, content: { [mediaTypes[body.kind]]: { schema: bodySchema(body, schema) } } }
}

/** @param schema  schema of a JSON body, of one NDJSON line, or of the text fields of a form */
function bodySchema({ kind }: Body, schema: JsonSchema): JsonSchema {
  if (kind === 'multipart') return withFile(schema)
  if (kind === 'ndjson') return { type: 'string', contentMediaType: mediaTypes.ndjson, contentSchema: schema }
  return schema
}

const mediaTypes = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  multipart: 'multipart/form-data',
} as const

function withFile({ properties, required = [], ...schema }: JsonSchema): JsonSchema {
  const file: JsonSchema = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' }
  return { ...schema, properties: { file, ...properties }, required: ['file', ...required] }
}

function repliesOf(
  { replies, events }: Route,
  schemas: Record<string, JsonSchema>,
): Record<string, OpenApiResponse> {
  const responses = Object.fromEntries(
    Object.entries(replies).map(([status, reply]) => [status, replyOf(Number(status), reply, schemas)]),
  )
  const { content } = responses[200] ?? {}
  if (events && content) {
    const eventSchemas = Object.values(events).map(event => schemaOf(event, 'output', schemas))
    // Events with different names can have the same schema.
    const distinct = [...new Map(eventSchemas.map(schema => [JSON.stringify(schema), schema])).values()]
    content['text/event-stream'] = { schema: distinct.length === 1 ? distinct[0]! : { anyOf: distinct } }
  }
  return responses
}

function replyOf(
  status: number,
  reply: Replies[number],
  schemas: Record<string, JsonSchema>,
): OpenApiResponse {
  const description =
    status === 302
      ? 'Redirect'
      : status === 201
        ? 'Created'
        : status === 202
          ? 'Accepted'
          : reply === null
            ? 'Done'
            : 'OK'
  if (reply === null) return { description }
  if (typeof reply !== 'string')
    return { description, content: { 'application/json': { schema: schemaOf(reply, 'output', schemas) } } }
  return {
    description,
    content: { [reply]: { schema: reply.startsWith('text/') ? { type: 'string' } : {} } },
  }
}

/**
 * Returns the shared error responses (only 400 and 500 for an open route), plus one response for each other status
 * among the error codes of the route.
 */
function failureResponses(route: Route): OpenApiOperation['responses'] {
  const open = route.access.kind === 'open'
  const failures: OpenApiOperation['responses'] = {}
  for (const status of Object.keys(sharedErrorDescriptions))
    if (!open || status === '400' || status === '500')
      failures[status] = { $ref: `#/components/responses/Error${status}` }
  for (const status of new Set(route.errors.map(code => errorRegistry[code].status))) {
    if (status in failures) continue
    const codes = route.errors.filter(code => errorRegistry[code].status === status)
    failures[status] = failureResponse(codes.map(code => `\`${code}\``).join(', '))
  }
  return failures
}

function failureResponse(description: string): OpenApiResponse {
  return { description, content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }
}

const errorSchema: JsonSchema = {
  type: 'object',
  description: 'The body of every error response.',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string', description: 'stable error code; `GET /error-codes` lists all codes' },
        message: { type: 'string' },
        requestId: { type: 'string' },
        hint: { type: 'string', description: 'what to do next' },
        docs: { type: 'string', description: 'page and anchor in the documentation' },
      },
      required: ['code', 'message', 'requestId'],
    },
  },
  required: ['error'],
}

/**
 * Returns the JSON Schema of a zod schema, and moves named schemas to `schemas`.
 *
 * @throws Error  two schemas with the same name differ
 */
function schemaOf(
  schema: z.ZodType,
  io: 'input' | 'output',
  schemas: Record<string, JsonSchema>,
): JsonSchema {
  const converted = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      if (zodSchema._zod.def.type === 'pipe' && io === 'output')
        Object.assign(jsonSchema, schemaOf(sourceSchema(zodSchema), 'input', schemas))
      removeUnusedKeywords(jsonSchema as JsonSchema, io)
    },
  })
  const {
    $defs = {},
    $schema: _dialect,
    ...inlineSchema
  } = withComponentRefs(converted as JsonSchema & { $defs?: typeof schemas })
  for (const [name, definition] of Object.entries($defs)) {
    if (schemas[name] && JSON.stringify(schemas[name]) !== JSON.stringify(definition))
      throw new Error(`two schemas are named ${name}`)
    schemas[name] = definition
  }
  return inlineSchema
}

/** Returns the input schema of a pipe. Responses contain values in their untransformed form. */
function sourceSchema(schema: z.core.$ZodType): z.ZodType {
  return (schema._zod.def as z.core.$ZodPipeDef).in as z.ZodType
}

/** Removes keywords that zod adds but readers do not need. Responses allow additional fields. */
function removeUnusedKeywords(schema: JsonSchema, io: 'input' | 'output'): void {
  if (schema.format) delete schema.pattern
  if (schema.minimum === -Number.MAX_SAFE_INTEGER) delete schema.minimum
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum
  delete schema.propertyNames
  if (schema.additionalProperties === false && io === 'output') delete schema.additionalProperties
}

function withComponentRefs<T>(schema: T): T {
  return JSON.parse(
    JSON.stringify(schema).replaceAll('"$ref":"#/$defs/', '"$ref":"#/components/schemas/'),
  ) as T
}
