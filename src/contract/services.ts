/**
 * Services, one file per kind.
 *
 * @see docs/services.md
 */
export * from './services/chunking.ts'
export * from './services/embedding.ts'
export type { ServiceProblem } from './services/fields.ts'
export * from './services/llm.ts'
export * from './services/reranking.ts'
