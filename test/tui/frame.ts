import { renderToString } from 'ink'
import type { ReactNode } from 'react'

/** Returns the rows that Ink draws for an element, without trailing spaces. */
export function rowsOf(element: ReactNode, columns: number): string[] {
  return renderToString(element, { columns })
    .split('\n')
    .map(row => row.trimEnd())
}
