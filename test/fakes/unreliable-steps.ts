import type { EmbeddingStep } from './embedding-server.ts'

/** Failures of a provider, which `unreliableSteps` uses in turns. Pauses are short, so that tests do not wait. */
const failures: readonly ((dimension: number) => EmbeddingStep)[] = [
  () => ({ status: 429, headers: { 'retry-after': '0' } }),
  () => ({ status: 500, headers: { 'retry-after': '0' } }),
  () => ({ delayMs: 50 }),
  dimension => ({ dimension: dimension + 1 }),
  () => ({ truncated: true }),
  () => ({ status: 503, headers: { 'retry-after': '0' }, body: '<html>busy</html>' }),
]

/**
 * Returns the responses of a provider that fails in turns: with 429, 500, slowly, with vectors of another dimension, with truncated
 * JSON, and with 503. Between two failures, up to three requests succeed.
 */
export function unreliableSteps(count: number, dimension: number): EmbeddingStep[] {
  const steps: EmbeddingStep[] = []
  for (let turn = 0; steps.length < count; turn++) {
    steps.push(failures[turn % failures.length]!(dimension))
    for (let good = 0; good < turn % 4; good++) steps.push({})
  }
  return steps
}
