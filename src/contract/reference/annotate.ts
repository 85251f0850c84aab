import type { JsonSchema, OpenApi, OpenApiOperation } from '../openapi-types.ts'
import { bodyExamples } from './body-examples.ts'
import { fieldDescriptions, parameterDescriptions } from './field-descriptions.ts'
import { filterSchema } from './filter-schema.ts'
import { operationDescriptions } from './operation-descriptions.ts'
import { schemaDescriptions } from './schema-descriptions.ts'
import { topicTexts } from './topic-texts.ts'

/** Name of the resource schema of each topic. Request bodies use the field descriptions of this schema. */
const resourceSchemas: Readonly<Record<string, string>> = {
  workspaces: 'Workspace',
  kb: 'KnowledgeBase',
  documents: 'Document',
  filters: 'KnowledgeFilter',
  agents: 'Agent',
  conversations: 'Conversation',
  chunkingServices: 'ChunkingService',
  embeddingServices: 'EmbeddingService',
  rerankingServices: 'RerankingService',
  llmServices: 'LlmService',
  mcpServers: 'McpServer',
  principals: 'Principal',
  apiKeys: 'ApiKey',
  playground: 'PlaygroundResult',
}

/** Adds descriptions and examples to an OpenAPI document, and sorts its tags. Keeps existing descriptions. */
export function annotate(document: OpenApi): void {
  document.components.schemas.Filter = { ...filterSchema }
  for (const [name, schema] of Object.entries(document.components.schemas)) {
    setDescription(schema, schemaDescriptions[name])
    describeFields(schema, [name])
  }
  for (const operation of Object.values(document.paths).flatMap(path => Object.values(path)))
    annotateOperation(operation)
  const topicOrder = Object.keys(topicTexts)
  const positionOf = (name: string) =>
    topicOrder.includes(name) ? topicOrder.indexOf(name) : topicOrder.length
  document.tags.sort((a, b) => positionOf(a.name) - positionOf(b.name))
  for (const tag of document.tags) {
    const { title, description } = topicTexts[tag.name] ?? {}
    Object.assign(tag, { ...(title && { 'x-displayName': title, description }) })
  }
}

function annotateOperation(operation: OpenApiOperation): void {
  const { operationId, requestBody, responses } = operation
  const topic = operation.tags[0]!
  setDescription(operation, operationDescriptions[operationId])
  for (const parameter of operation.parameters)
    setDescription(
      parameter,
      parameterDescriptions[`${operationId}.${parameter.name}`] ?? parameterDescriptions[parameter.name],
    )
  const owners = [operationId, ...(resourceSchemas[topic] ? [resourceSchemas[topic]] : []), topic]
  for (const content of Object.values(requestBody?.content ?? {})) {
    describeFields(content.schema, owners)
    if (operationId in bodyExamples) content.example = bodyExamples[operationId]
  }
  for (const response of Object.values(responses))
    if ('content' in response)
      for (const { schema } of Object.values(response.content ?? {})) describeFields(schema, owners)
}

/** @param owners  names of the schemas and operations that the schema belongs to, most specific first */
function describeFields(schema: JsonSchema, owners: readonly string[], parent?: string): void {
  for (const [name, field] of Object.entries(schema.properties ?? {})) {
    const keys = [...(parent ? [`${parent}.${name}`] : []), ...owners.map(owner => `${owner}.${name}`), name]
    setDescription(field, fieldDescriptions[keys.find(key => Object.hasOwn(fieldDescriptions, key)) ?? ''])
    if (field.$ref) {
      // zod adds these keywords of the referenced schema next to the reference.
      delete field.type
      delete field.additionalProperties
    }
    describeFields(field, owners, name)
  }
  for (const part of subschemasOf(schema)) describeFields(part, owners, parent)
}

/** Returns the direct subschemas of a schema, except those of its properties. */
export function subschemasOf({
  items,
  additionalProperties,
  contentSchema,
  anyOf = [],
  allOf = [],
}: JsonSchema): JsonSchema[] {
  return [items, additionalProperties, contentSchema]
    .filter(part => typeof part === 'object')
    .concat(anyOf, allOf)
}

/** Sets a description, capitalized and with a period at the end. An existing description takes precedence. */
function setDescription(target: { description?: string }, text: string | undefined): void {
  const description = target.description ?? text
  if (description === undefined) return
  const capitalized = description[0]!.toUpperCase() + description.slice(1)
  target.description = /[.!?:]$/.test(capitalized) ? capitalized : `${capitalized}.`
}
