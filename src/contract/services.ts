/** Services, a file for each kind. @see contract 4 */
export * from './services/chunking.ts'
export * from './services/embedding.ts'
export * from './services/llm.ts'
export * from './services/reranking.ts'
