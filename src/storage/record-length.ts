import type { RecordView } from './content.ts'

/** Estimated length of a number of a vector, in characters of JSON. */
const vectorNumberChars = 20

/** Returns the estimated length of a record in a response, in characters of JSON. */
export function recordChars({ text, payload, vector }: RecordView): number {
  return JSON.stringify([text, payload]).length + vectorNumberChars * (vector?.length ?? 0)
}

/** Returns the total of {@link recordChars}. */
export function totalRecordChars(views: readonly RecordView[]): number {
  return views.reduce((sum, view) => sum + recordChars(view), 0)
}

/**
 * Takes records until there are `limit`, or until their total length exceeds `charsMax`. The record that exceeds it is
 * included. Takes no further record from the source, so a generator that reads records stops.
 */
export function takeRecords(
  views: Iterable<RecordView>,
  {
    limit = Number.POSITIVE_INFINITY,
    charsMax = Number.POSITIVE_INFINITY,
  }: { limit?: number; charsMax?: number | undefined },
): RecordView[] {
  const taken: RecordView[] = []
  let charsLeft = charsMax
  if (limit < 1) return taken
  for (const view of views) {
    taken.push(view)
    if (charsMax !== Number.POSITIVE_INFINITY) charsLeft -= recordChars(view)
    if (taken.length === limit || charsLeft < 0) break
  }
  return taken
}
