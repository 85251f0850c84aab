import type { ErrorCode } from './errors.ts'
import type { Scope } from './scopes.ts'

/** JSON Schema in the OpenAPI document. */
export interface JsonSchema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, JsonSchema>
  required?: string[]
  items?: JsonSchema
  additionalProperties?: boolean | JsonSchema
  anyOf?: JsonSchema[]
  allOf?: JsonSchema[]
  /** Schema of each line of an NDJSON body. */
  contentSchema?: JsonSchema
  [keyword: string]: unknown
}

export interface MediaTypes {
  [mediaType: string]: { schema: JsonSchema; example?: unknown }
}

export interface OpenApiResponse {
  description: string
  headers?: Record<string, { description: string; schema: JsonSchema }>
  content?: MediaTypes
}

export interface OpenApiOperation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  parameters: {
    name: string
    in: 'path' | 'query'
    required: boolean
    description?: string
    schema: JsonSchema
  }[]
  requestBody?: { required: boolean; content: MediaTypes }
  responses: Record<string, OpenApiResponse | { $ref: string }>
  security?: Record<string, string[]>[]
  /** Description of the access rule, and the scopes that it mentions. */
  'x-access': { rule: string; scopes: Scope[] }
  /** Error codes in addition to the shared ones, in alphabetical order. */
  'x-error-codes': ErrorCode[]
}

/** Subset of OpenAPI 3.1 that the document uses. */
export interface OpenApi {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string }[]
  /** Topics in the order of the API reference. `x-displayName` is the title. */
  tags: { name: string; description?: string; 'x-displayName'?: string }[]
  paths: Record<string, Record<string, OpenApiOperation>>
  components: {
    schemas: Record<string, JsonSchema>
    responses: Record<string, OpenApiResponse>
    securitySchemes: Record<
      string,
      { type: 'http'; scheme: 'bearer'; bearerFormat?: string; description: string }
    >
  }
}
