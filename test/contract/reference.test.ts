import { BaseResolver, createConfig, lintDocument, makeDocumentFromString } from '@redocly/openapi-core'
import { describe, expect, test } from 'vitest'
import { api } from '../../src/contract/index.ts'
import { type JsonSchema, type OpenApiOperation, openApiDocument } from '../../src/contract/openapi.ts'
import { subschemasOf } from '../../src/contract/reference/annotate.ts'
import { bodyExamples } from '../../src/contract/reference/body-examples.ts'
import { fieldDescriptions, parameterDescriptions } from '../../src/contract/reference/field-descriptions.ts'
import { operationDescriptions as operationTexts } from '../../src/contract/reference/operation-descriptions.ts'
import { schemaDescriptions as schemaTexts } from '../../src/contract/reference/schema-descriptions.ts'
import { topicTexts } from '../../src/contract/reference/topic-texts.ts'

const document = openApiDocument(api, { version: '0.0.0' })
const operations = Object.values(document.paths).flatMap(path => Object.values(path))
const { schemas } = document.components

/** Returns the fields of a schema and of its nested schemas, by path. */
function* fieldsOf(schema: JsonSchema, at: string): Generator<[path: string, field: JsonSchema]> {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    yield [`${at}.${name}`, field]
    yield* fieldsOf(field, `${at}.${name}`)
  }
  for (const part of subschemasOf(schema)) yield* fieldsOf(part, at)
}

function* bodiesOf({
  operationId,
  requestBody,
  responses,
}: OpenApiOperation): Generator<[path: string, body: JsonSchema]> {
  for (const { schema } of Object.values(requestBody?.content ?? {})) yield [`${operationId} request`, schema]
  for (const [status, response] of Object.entries(responses))
    if ('content' in response)
      for (const { schema } of Object.values(response.content ?? {}))
        yield [`${operationId} ${status}`, schema]
}

const allFields = [
  ...Object.entries(schemas),
  ...operations.flatMap(operation => [...bodiesOf(operation)]),
].flatMap(([path, schema]) => [...fieldsOf(schema, path)])

/** Pattern of a full sentence. */
const sentence = /^[^a-z].*[.!?:]$/s

describe('a description in src/contract/reference or in the declaration exists for', () => {
  test('every group, operation and named schema', () => {
    const described = [
      ...document.tags.map(tag => [tag.name, tag.description] as const),
      ...operations.map(operation => [operation.operationId, operation.description] as const),
      ...Object.entries(schemas).map(([name, schema]) => [name, schema.description] as const),
    ]
    expect(described.filter(([, text]) => !sentence.test(text ?? '')).map(([name]) => name)).toEqual([])
  })

  test('every parameter', () => {
    const all = operations.flatMap(({ operationId, parameters }) =>
      parameters.map(({ name, description = '' }) => ({ name: `${operationId} ${name}`, description })),
    )
    expect(all.filter(({ description }) => !sentence.test(description)).map(({ name }) => name)).toEqual([])
  })

  test('every field', () => {
    const missing = allFields.filter(([, { description = '' }]) => !sentence.test(description))
    expect(missing.map(([path]) => path)).toEqual([])
  })
})

test('no description or example refers to a missing operation, schema, field or parameter', () => {
  const ids = new Set(operations.map(({ operationId }) => operationId))
  const fieldNames = new Set(allFields.map(([path]) => path.split('.').at(-1)))
  const parameterNames = new Set(
    operations.flatMap(operation => operation.parameters.map(({ name }) => name)),
  )
  const last = (key: string) => key.split('.').at(-1)!
  expect(Object.keys(operationTexts).filter(id => !ids.has(id))).toEqual([])
  expect(Object.keys(schemaTexts).filter(name => !schemas[name])).toEqual([])
  expect(Object.keys(topicTexts).filter(name => !document.tags.some(tag => tag.name === name))).toEqual([])
  expect(Object.keys(fieldDescriptions).filter(key => !fieldNames.has(last(key)))).toEqual([])
  expect(Object.keys(parameterDescriptions).filter(key => !parameterNames.has(last(key)))).toEqual([])
  expect(Object.keys(bodyExamples).filter(id => !ids.has(id))).toEqual([])
})

test('every body has an example', () => {
  const without = operations.filter(({ requestBody }) =>
    Object.values(requestBody?.content ?? {}).some(({ example }) => example === undefined),
  )
  expect(without.map(({ operationId }) => operationId)).toEqual([])
})

test('the first groups are the most used ones', () => {
  const names = document.tags.map(({ name }) => name)
  expect(names.slice(0, 3)).toEqual(['workspaces', 'kb', 'documents'])
  expect(names.indexOf('kb')).toBeLessThan(names.indexOf('setup'))
})

test('the schema of filters covers the operators of the grammar', () => {
  expect(schemas.KnowledgeFilter!.properties!.filter!.$ref).toBe('#/components/schemas/Filter')
  const [combination, conditions] = schemas.Filter!.anyOf!
  const comparisons = subschemasOf(subschemasOf(conditions!)[0]!)[1]!
  const operators = [combination!, comparisons].flatMap(({ properties }) => Object.keys(properties!))
  expect(operators.sort()).toEqual([
    '$all',
    '$and',
    '$eq',
    '$gt',
    '$gte',
    '$in',
    '$lt',
    '$lte',
    '$ne',
    '$nin',
    '$not',
    '$or',
  ])
})

test('a linter has no warnings, except for two routes whose only success is a redirect', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const problems = await lintDocument({
    document: makeDocumentFromString(JSON.stringify(document), 'openapi.json'),
    externalRefResolver: new BaseResolver(),
    config,
  })
  const found = problems.map(({ ruleId, location }) => `${ruleId} ${location[0]!.pointer}`)
  expect(found.sort()).toEqual([
    'operation-2xx-response #/paths/~1auth~1callback/get/responses',
    'operation-2xx-response #/paths/~1auth~1login/get/responses',
  ])
})
