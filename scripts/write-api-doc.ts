/**
 * Writes docs/api.md from the declarations of the routes.
 *
 *   npx tsx scripts/write-api-doc.ts
 */
import { writeFileSync } from 'node:fs'
import { api } from '../src/contract/index.ts'
import { type JsonSchema, type OpenApiOperation, openApiDocument } from '../src/contract/openapi.ts'

const intro = `# HTTP API

This page lists every route of the HTTP API: its access rule, its fields, and its error codes. [HTTP conventions](http.md)
describes what all routes have in common.

\`\`\`sh
wb api GET /api/v1/workspaces
\`\`\`

A running server shows the complete reference, with the type of each field, at \`/docs\`. Generate clients from the OpenAPI
document at \`/api/v1/openapi.json\`.

In the paths, \`W\` is \`/api/v1/workspaces/{workspaceId}\`, and \`KB\` is \`W/knowledge-bases/{knowledgeBaseId}\`.

| topic | rule |
| --- | --- |
| bodies | JSON in UTF-8, unless the route says otherwise; required fields are in bold |
| \`PATCH\` | changes only the fields in the body; \`null\` clears a field; lists and maps are replaced as a whole |
| unknown fields | ignored and listed in the header \`X-Workbase-Ignored\`, unless the route rejects them |
| versions | each response has the version of the runtime in \`X-Workbase-Version\` |
| lists | accept \`limit\` (1 to 200, default 50) and \`cursor\`, and return \`{"items": […], "nextCursor": …}\`; \`nextCursor\` is null on the last page |
| errors | all errors have the same [format](errors.md) |

If items are added or deleted between two pages, the other items stay in order, and none is repeated or left out.

Every route can return \`validation_error\`, \`unauthorized\`, \`forbidden\`, \`forbidden_origin\`, \`payload_too_large\`, \`rate_limited\`,
\`overloaded\`, \`control_plane_unavailable\`, \`draining\` and \`internal_error\`. The other error codes are listed with each route.
[Who may do what](security.md#who-may-do-what) lists the access of each type of caller.

\`npx tsx scripts/write-api-doc.ts\` writes this page.
`

/** Returns the text of docs/api.md. */
export function apiDoc(): string {
  const document = openApiDocument(api, { version: '0' })
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  )
  const sections = document.tags.map(({ name, description = '', 'x-displayName': title = name }) => {
    const ofTopic = operations.filter(({ operation }) => operation.tags.includes(name))
    return [`## ${title}`, description, ...ofTopic.map(sectionOf)].join('\n\n')
  })
  return `${[intro.trim(), ...sections].join('\n\n')}\n`
}

function sectionOf({
  method,
  path,
  operation,
}: {
  method: string
  path: string
  operation: OpenApiOperation
}) {
  const { summary, description, parameters, responses } = operation
  const statuses = Object.keys(responses).filter(status => status < '400')
  const query = parameters.filter(parameter => parameter.in === 'query').map(({ name }) => `\`${name}\``)
  const codes = operation['x-error-codes'].map(
    code => `[\`${code}\`](errors.md#${code.replaceAll('_', '-')})`,
  )
  const facts = [
    `Access: ${operation['x-access'].rule}.`,
    query.length > 0 ? `Query: ${query.join(', ')}.` : '',
    bodyOf(operation),
    `Returns ${statuses.join(' or ')}.`,
    codes.length > 0 ? `Error codes: ${codes.join(', ')}.` : '',
  ]
  return [
    `### \`${method.toUpperCase()} ${shortened(path)}\``,
    `${summary}.`,
    ...(description ? [description] : []),
    facts.filter(fact => fact !== '').join(' '),
  ].join('\n\n')
}

/** Returns the fields of a body, required ones in bold. */
function bodyOf({ requestBody }: OpenApiOperation): string {
  const [[mediaType, { schema }] = ['', { schema: {} as JsonSchema }]] = Object.entries(
    requestBody?.content ?? {},
  )
  const { properties = {}, required = [] } = schema.contentSchema ?? schema
  const names = Object.keys(properties).map(name =>
    required.includes(name) ? `**\`${name}\`**` : `\`${name}\``,
  )
  const kind = mediaType === 'application/json' ? '' : ` (\`${mediaType}\`)`
  return names.length > 0 ? `Body${kind}: ${names.join(', ')}.` : ''
}

function shortened(path: string): string {
  return path
    .replace('/api/v1/workspaces/{workspaceId}/knowledge-bases/{knowledgeBaseId}', 'KB')
    .replace('/api/v1/workspaces/{workspaceId}', 'W')
}

if (import.meta.filename === process.argv[1])
  writeFileSync(new URL('../docs/api.md', import.meta.url), apiDoc())
