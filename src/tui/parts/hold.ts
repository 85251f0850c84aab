import type { Terminal } from './screen.ts'

export interface Holder {
  /** Text that was typed or pasted. */
  onData(text: string): void
  onResize(): void
  /** Nobody types any more. */
  onEnd(): void
  /** Ends it from outside. */
  readonly signal: AbortSignal
  /** What puts the terminal back as it was. */
  undo(): string
}

export interface Held {
  /** Hear nothing more. */
  deafen(): void
  /** Put the terminal back. */
  release(): void
}

/**
 * Take a terminal, key by key. A process that ends in any other way puts it back, too.
 *
 * @param take  what sets it up
 */
export function hold({ stdin, stdout, write }: Terminal, holder: Holder, take: string): Held {
  const { signal } = holder
  const onData = (text: string) => holder.onData(text)
  const onResize = () => holder.onResize()
  const onEnd = () => holder.onEnd()
  const undo = () => write(holder.undo())
  stdin.setEncoding('utf8')
  stdin.setRawMode(true)
  stdin.on('data', onData)
  stdin.on('end', onEnd)
  signal.addEventListener('abort', onEnd)
  stdout.on('resize', onResize)
  process.on('exit', undo)
  write(take)
  return {
    deafen() {
      stdout.off('resize', onResize)
      stdin.off('data', onData)
      stdin.off('end', onEnd)
      signal.removeEventListener('abort', onEnd)
    },
    release() {
      process.off('exit', undo)
      undo()
      stdin.setRawMode(false)
      stdin.pause()
    },
  }
}
