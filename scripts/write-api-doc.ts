/**
 * Writes docs/api.md from the declarations of the routes.
 *
 *   npx tsx scripts/write-api-doc.ts
 */
import { writeFileSync } from 'node:fs'
import { api } from '../src/contract/index.ts'
import { type JsonSchema, type OpenApiOperation, openApiDocument } from '../src/contract/openapi.ts'

const intro = `# The API

Every route, by topic. A running server shows the same with all fields at \`/docs\`, and to machines at
\`/api/v1/openapi.json\`. In the paths, \`W\` is \`/api/v1/workspaces/{workspaceId}\` and \`KB\` is
\`W/knowledge-bases/{knowledgeBaseId}\`.

\`\`\`sh
wb api GET /api/v1/workspaces
\`\`\`

**Bodies** (required fields in bold) are JSON in UTF-8 unless a route says otherwise. A PATCH leaves what it does not name as it is, \`null\` clears
a field, and lists and maps are replaced whole. Where a route is not strict about them, unknown fields are ignored and
named in \`X-Workbase-Ignored\`.

**Versions**: every answer names that of the runtime in \`X-Workbase-Version\`.

**Lists** take \`limit\` (1 to 200, 50 unless given) and \`cursor\`, and answer \`{"items": […], "nextCursor": …}\`.
\`nextCursor\` is null on the last page. What is added or deleted between two pages moves nothing else.

**Failures** have one form, and their codes are on [a page of their own](errors.md). Any route may answer
\`validation_error\`, \`unauthorized\`, \`forbidden\`, \`forbidden_origin\`, \`payload_too_large\`, \`rate_limited\`, \`overloaded\`,
\`control_plane_unavailable\`, \`draining\` and \`internal_error\`; the others are listed with the route. Who may call what
is in [security](security.md#who-may-do-what).

This page is written by \`npx tsx scripts/write-api-doc.ts\`.
`

/** Returns the text of docs/api.md. */
export function apiDoc(): string {
  const document = openApiDocument(api, { version: '0' })
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })),
  )
  const sections = document.tags.map(({ name, description = '' }) => {
    const own = operations.filter(({ operation }) => operation.tags.includes(name))
    return [`## ${wordsOf(name)}`, description, ...own.map(sectionOf)].join('\n\n')
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
    `Answers ${statuses.join(' or ')}.`,
    codes.length > 0 ? `Codes: ${codes.join(', ')}.` : '',
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

function wordsOf(topic: string): string {
  const words =
    topic === 'kb' ? 'knowledge bases' : topic.replaceAll(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`)
  return words[0]!.toUpperCase() + words.slice(1)
}

if (import.meta.filename === process.argv[1])
  writeFileSync(new URL('../docs/api.md', import.meta.url), apiDoc())
