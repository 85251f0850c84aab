import type { TextPlace } from '../../base/text-layout.ts'

/**
 * Returns the place of the file at each offset of its text; undefined before the first place.
 *
 * @param offsets  in ascending order
 * @param places   with ascending starts
 */
export function placesAt(
  offsets: readonly number[],
  places: readonly TextPlace[],
): (TextPlace | undefined)[] {
  let next = 0
  return offsets.map(offset => {
    while (next < places.length && places[next]!.start <= offset) next++
    return places[next - 1]
  })
}
