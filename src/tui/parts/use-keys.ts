import { useStdin } from 'ink'
import { useLayoutEffect } from 'react'
import type { Clock } from '../../base/clock.ts'
import { KeyReader } from './key-reader.ts'
import type { Key } from './keys.ts'

/**
 * Calls a handler with each key. Ink's `useInput` cannot do this: it reports several keys that arrive together as one
 * input, and does not support bracketed paste.
 *
 * @param onKey  must stay the same function
 */
export function useKeys(clock: Clock, onKey: (key: Key) => void): void {
  const { stdin } = useStdin()
  // `useEffect` would run later, and keys typed before that would be lost.
  useLayoutEffect(() => {
    const keys = new KeyReader(clock, onKey)
    const onData = (text: string) => keys.read(text)
    stdin.on('data', onData)
    return () => {
      stdin.off('data', onData)
      keys.close()
    }
  }, [stdin, clock, onKey])
}
