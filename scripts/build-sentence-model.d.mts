export const sentenceModelFiles: readonly string[]
export function buildSentenceModel(outDir: string, source?: string): void
