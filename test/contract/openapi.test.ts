import { Validator } from '@seriousme/openapi-schema-validator'
import { describe, expect, test } from 'vitest'
import { api } from '../../src/contract/index.ts'
import { type OpenApiOperation, openApiDocument } from '../../src/contract/openapi.ts'
import type { Route } from '../../src/contract/route.ts'

const document = openApiDocument(api, { version: '0.0.0' })
const text = JSON.stringify(document)

function operations(): [id: string, route: Route, operation: OpenApiOperation][] {
  return Object.entries(api).flatMap(([topic, routes]) =>
    Object.entries(routes as Record<string, Route>).map(
      ([name, route]): [string, Route, OpenApiOperation] => {
        const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
        return [`${topic}.${name}`, route, document.paths[path]![route.method.toLowerCase()]!]
      },
    ),
  )
}

test('S9-01: is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate(
    structuredClone(document) as unknown as Record<string, unknown>,
  )
  expect(result.errors).toBeUndefined()
  expect([result.valid, document.openapi]).toEqual([true, '3.1.0'])
})

test('matches the snapshot', async () => {
  await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot('./openapi.snap.json')
})

describe.each(operations())('%s', (id, route, operation) => {
  test('is described with its access rule, scopes and codes', () => {
    expect(operation.operationId).toBe(id)
    expect(operation['x-access'].rule).toMatch(/\w/)
    const { access } = route
    const raised = access.kind === 'needs' ? access.extraScope?.scope : undefined
    const scopes =
      access.kind === 'needs' || access.kind === 'ownRecords'
        ? [access.scope, access.alternative, raised]
        : []
    expect(operation['x-access'].scopes).toEqual(scopes.filter(scope => scope !== undefined))
    expect(operation['x-error-codes']).toEqual([...new Set(route.errors)].sort())
  })

  test('declares its replies, and with an access rule also the shared errors and both security schemes', () => {
    expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(Object.keys(route.replies)))
    if (route.access.kind === 'open') return
    for (const status of ['400', '401', '403', '409', '413', '422', '429', '500'])
      expect(operation.responses[status]).toEqual({ $ref: `#/components/responses/Error${status}` })
    expect(operation.security).toEqual([{ WorkbaseApiKey: [] }, { OidcBearer: [] }, {}])
  })
})

test('components keep the names of the 0.5 API', () => {
  for (const name of ['Adoptable', 'Chunk', 'Entry', 'Hit', 'Job', 'Probe', 'Snippet'])
    expect(document.components.schemas).toHaveProperty(name)
  const reply = (path: string) => JSON.stringify(document.paths[path]!.get!.responses[200])
  expect(reply('/health/details')).toContain('"#/components/schemas/Probe"')
  expect(JSON.stringify(document.components.schemas.ConnectSnippets)).toContain(
    '"#/components/schemas/Snippet"',
  )
  expect(JSON.stringify(document.components.schemas.ConnectTraffic)).toContain('"#/components/schemas/Entry"')
})

test('every reference resolves', () => {
  const references = [...text.matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
  expect(references.length).toBeGreaterThan(50)
  for (const [, kind, name] of references) expect(document.components).toHaveProperty([kind!, name!])
  expect(text).not.toContain('$defs')
})

test("omits zod's internal limits, and keeps fields that are named like keywords", () => {
  expect(text).not.toContain(String(Number.MAX_SAFE_INTEGER))
  expect(text).not.toContain('02468')
  expect(document.components.schemas.Chunk!.properties).toHaveProperty('id')
})

test('optional body fields are not required, and replies may gain fields', () => {
  const body = document.paths['/api/v1/workspaces']!.post!.requestBody!.content['application/json']!.schema
  expect(body.required).toEqual(['name'])
  expect(document.components.schemas.Workspace!.additionalProperties).toBeUndefined()
})

test('bodies are strict or lenient as declared', () => {
  for (const [id, { body }, operation] of operations()) {
    if (body?.kind !== 'json') continue
    const { schema } = operation.requestBody!.content['application/json']!
    expect(schema.additionalProperties === false, id).toBe(body.mode === 'strict')
  }
})
