import { UsageError } from '../errors.ts'

/** Parses the value of `--tolerance`, from 0 to 1. @throws UsageError */
export function parseTolerance(text: string): number {
  const value = text.trim() === '' ? Number.NaN : Number(text)
  if (value >= 0 && value <= 1) return value
  throw new UsageError(`--tolerance takes a number from 0 to 1, not "${text}"`)
}
