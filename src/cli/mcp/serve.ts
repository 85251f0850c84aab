import { pause } from '../../base/pause.ts'
import { lines } from '../../client/lines.ts'
import { McpBridge } from './bridge.ts'

type Parts = Omit<ConstructorParameters<typeof McpBridge>[0], 'write' | 'pause'>

/** Streams of an MCP client. */
interface Ends {
  readonly input: NodeJS.ReadStream
  readonly output: { write(text: string): unknown }
}

/** Serves one MCP client until its input ends or the user interrupts. Pending requests are answered first. */
export async function serveMcp(parts: Parts, { input, output }: Ends): Promise<void> {
  const write = (message: object) => void output.write(`${JSON.stringify(message)}\n`)
  const bridge = new McpBridge({ ...parts, write, pause })
  const stop = () => void input.destroy()
  parts.signal.addEventListener('abort', stop)
  try {
    for await (const line of lines(input)) bridge.take(line)
  } catch (error) {
    if (!parts.signal.aborted) throw error
  } finally {
    parts.signal.removeEventListener('abort', stop)
  }
  await bridge.settled()
}
