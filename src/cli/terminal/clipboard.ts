import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { clipboardCommand } from '../environment.ts'

/**
 * What puts a text into the clipboard of this person; undefined where no program does.
 *
 * @throws Error  (the function that is returned) it did not arrive; the message says why, without the text
 */
export function clipboard(): ((text: string) => Promise<void>) | undefined {
  const [program, ...args] = clipboardCommand() ?? []
  if (program === undefined) return undefined
  return async text => {
    const child = spawn(program, args, { stdio: ['pipe', 'ignore', 'ignore'] })
    // One that ends before it has read says so by its status.
    child.stdin.on('error', () => {})
    child.stdin.end(text)
    const [status] = (await once(child, 'exit')) as [number | null]
    if (status !== 0) throw new Error(`${program} ended with status ${status}`)
  }
}
