import { pause } from '../../base/pause.ts'
import { readLines } from '../../client/read-lines.ts'
import { McpBridge } from './bridge.ts'

type ServeMcpOptions = Omit<ConstructorParameters<typeof McpBridge>[0], 'write' | 'pause'>

/** Streams of an MCP client. */
interface ClientStreams {
  readonly input: NodeJS.ReadStream
  readonly output: { write(text: string): unknown }
}

/** Serves one MCP client until its input ends or the user presses Ctrl-C, and then waits for pending requests. */
export async function serveMcp(options: ServeMcpOptions, { input, output }: ClientStreams): Promise<void> {
  const write = (message: object) => void output.write(`${JSON.stringify(message)}\n`)
  const bridge = new McpBridge({ ...options, write, pause })
  const stop = () => void input.destroy()
  options.signal.addEventListener('abort', stop)
  try {
    for await (const line of readLines(input)) bridge.handleLine(line)
  } catch (error) {
    if (!options.signal.aborted) throw error
  } finally {
    options.signal.removeEventListener('abort', stop)
  }
  await bridge.waitForRequests()
}
