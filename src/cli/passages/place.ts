import { placePayloadKeys } from '../../contract/payload-keys.ts'

/** A page or slide, or a sheet of a spreadsheet. */
export interface PassagePlace {
  readonly kind: keyof typeof placePayloadKeys
  readonly value: number | string
}

/** Returns the page, slide or sheet in which a chunk starts; undefined if it has none. */
export function placeOf(payload: Readonly<Record<string, unknown>>): PassagePlace | undefined {
  for (const kind of ['page', 'slide', 'sheet'] as const) {
    const value = payload[placePayloadKeys[kind]]
    if (typeof value === 'number' || typeof value === 'string') return { kind, value }
  }
  return undefined
}
