import { Text } from 'ink'
import { createContext, memo, useContext } from 'react'
import { type Paint, paintFor } from './paint.ts'
import type { Line } from './spans.ts'

/** The styles of the terminal. */
export const PaintContext = createContext<Paint>(paintFor(false))

/** Lines below each other in a column. Each takes one row, and is truncated to the width of its box. */
export function Rows({ lines }: { lines: readonly Line[] }) {
  const paint = useContext(PaintContext)
  // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its position alone
  return lines.map((line, at) => <Row key={at} text={paint(line)} />)
}

/** A text that has its styles, and is laid out again only if it changes. */
const Row = memo(function Row({ text }: { text: string }) {
  // Ink gives an empty text no row.
  return <Text wrap="truncate">{text === '' ? ' ' : text}</Text>
})
