/**
 * Routes and schemas of services, with one file for each kind of service.
 *
 * @see docs/services.md
 */
export * from './services/chunking.ts'
export * from './services/embedding.ts'
export type { ServiceProblem } from './services/fields.ts'
export * from './services/llm.ts'
export * from './services/reranking.ts'
