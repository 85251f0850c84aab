import { Box, Static, Text, useCursor } from 'ink'

interface Frame {
  /** What stays on the screen; it only grows. */
  readonly printed: readonly { readonly key: number; readonly text: string }[]
  /** What changes below it. */
  readonly live: string
  readonly cursor: { readonly x: number; readonly y: number } | undefined
}

/** What stays, drawn once, and below it what changes. */
export function ChatView({ printed, live, cursor }: Frame) {
  const { setCursorPosition } = useCursor()
  setCursorPosition(cursor && { ...cursor })
  return (
    <>
      <Static items={printed as Frame['printed'][number][]}>
        {({ key, text }) => (
          <Box key={key}>
            <Text wrap="truncate">{text}</Text>
          </Box>
        )}
      </Static>
      <Text wrap="truncate">{live}</Text>
    </>
  )
}
