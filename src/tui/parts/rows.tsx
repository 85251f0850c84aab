import { Text } from 'ink'
import { createContext, memo, useContext } from 'react'
import { type Paint, paintFor } from './paint.ts'
import type { Line } from './spans.ts'

/** Context with the paint function of the terminal. */
export const PaintContext = createContext<Paint>(paintFor(false))

/** A column of lines. Each line takes one row, and is truncated to the width of its box. */
export function Rows({ lines }: { lines: readonly Line[] }) {
  const paint = useContext(PaintContext)
  // biome-ignore lint/suspicious/noArrayIndexKey: a row is identified by its position
  return lines.map((line, index) => <Row key={index} text={paint(line)} />)
}

/** A styled line. It is laid out again only if it changes. */
const Row = memo(function Row({ text }: { text: string }) {
  // Ink renders an empty text without a row.
  return <Text wrap="truncate">{text === '' ? ' ' : text}</Text>
})
