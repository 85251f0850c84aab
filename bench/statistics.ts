export { mean } from '../src/evaluation/resample.ts'

/** Returns a quantile of a sample by the nearest rank; `share` is from 0 to 1. */
export function quantile(sample: readonly number[], share: number): number {
  const sorted = [...sample].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

export function median(sample: readonly number[]): number {
  return quantile(sample, 0.5)
}

/** Returns a table in Markdown, which is also readable in a terminal. */
export function table(heads: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`
  return [line(heads), line(heads.map(() => '---')), ...rows.map(line)].join('\n')
}
