import { pause } from '../../base/pause.ts'
import { readLines } from '../../client/read-lines.ts'
import { McpBridge } from './bridge.ts'

type ServeMcpOptions = Omit<ConstructorParameters<typeof McpBridge>[0], 'write' | 'pause'>

/** Streams of an MCP client. */
interface ClientStreams {
  readonly input: NodeJS.ReadStream
  readonly output: { write(text: string): unknown }
}

/** Serves one MCP client until its input ends or the user interrupts. Pending requests are answered first. */
export async function serveMcp(parts: ServeMcpOptions, { input, output }: ClientStreams): Promise<void> {
  const write = (message: object) => void output.write(`${JSON.stringify(message)}\n`)
  const bridge = new McpBridge({ ...parts, write, pause })
  const stop = () => void input.destroy()
  parts.signal.addEventListener('abort', stop)
  try {
    for await (const line of readLines(input)) bridge.handleLine(line)
  } catch (error) {
    if (!parts.signal.aborted) throw error
  } finally {
    parts.signal.removeEventListener('abort', stop)
  }
  await bridge.waitForRequests()
}
