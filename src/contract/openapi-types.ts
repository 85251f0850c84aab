import type { ErrorCode } from './errors.ts'
import type { Scope } from './scopes.ts'

/** JSON Schema in the OpenAPI document. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  default?: unknown
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  additionalProperties?: boolean | Schema
  anyOf?: Schema[]
  allOf?: Schema[]
  /** Schema of each line of NDJSON text. */
  contentSchema?: Schema
  [keyword: string]: unknown
}

export interface MediaTypes {
  [mediaType: string]: { schema: Schema; example?: unknown }
}

export interface Response {
  description: string
  headers?: Record<string, { description: string; schema: Schema }>
  content?: MediaTypes
}

export interface Operation {
  operationId: string
  summary: string
  description?: string
  tags: string[]
  parameters: {
    name: string
    in: 'path' | 'query'
    required: boolean
    description?: string
    schema: Schema
  }[]
  requestBody?: { required: boolean; content: MediaTypes }
  responses: Record<string, Response | { $ref: string }>
  security?: Record<string, string[]>[]
  /** Access rule in words, and the scopes that it requires. */
  'x-access': { rule: string; scopes: Scope[] }
  /** Error codes in addition to the shared ones, in alphabetical order. */
  'x-error-codes': ErrorCode[]
}

/** Subset of OpenAPI 3.1 that the document uses. */
export interface OpenApi {
  openapi: '3.1.0'
  info: { title: string; version: string; description: string; license: { name: string; identifier: string } }
  servers: { url: string }[]
  /** Groups in the order of the reference. `x-displayName` is the title. */
  tags: { name: string; description?: string; 'x-displayName'?: string }[]
  paths: Record<string, Record<string, Operation>>
  components: {
    schemas: Record<string, Schema>
    responses: Record<string, Response>
    securitySchemes: Record<
      string,
      { type: 'http'; scheme: 'bearer'; bearerFormat?: string; description: string }
    >
  }
}
