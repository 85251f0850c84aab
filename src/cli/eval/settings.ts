import type { EvalSettings } from '../../evaluation/eval-result.ts'

/** Formats settings as one word. */
export function formatSettings({ mode, lexicalWeight, rerank }: EvalSettings): string {
  const texts = [
    ...(mode === undefined ? [] : [`mode=${mode}`]),
    ...(lexicalWeight === undefined ? [] : [`lexical-weight=${lexicalWeight}`]),
    ...(rerank ? ['rerank'] : []),
  ]
  return texts.join(',') || 'default'
}
