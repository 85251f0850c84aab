import { McpServer } from '@modelcontextprotocol/server'
import { z } from 'zod'

/** One red pixel. */
const pixel =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

/**
 * Creates an MCP server like the example in the SDK guide: input and output schemas, annotations, content of every
 * type, tools that throw or report progress, a resource and a prompt.
 *
 * @see https://ts.sdk.modelcontextprotocol.io/v2/servers/tools
 */
export function exampleServer(): McpServer {
  const server = new McpServer({ name: 'example', version: '1.0.0' }, { capabilities: { logging: {} } })
  registerWeather(server)
  registerParts(server)
  registerWork(server)
  server.registerResource('readme', 'file:///readme.md', { mimeType: 'text/markdown' }, ({ href }) => ({
    contents: [{ uri: href, text: 'Nobody reads this.' }],
  }))
  server.registerPrompt('greet', { description: 'A greeting.' }, () => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Hello.' } }],
  }))
  return server
}

/** Tools with structured results, with and without text. */
function registerWeather(server: McpServer): void {
  const inputSchema = z.object({ city: z.string().describe('a town') })
  const outputSchema = z.object({ celsius: z.number(), sky: z.enum(['clear', 'grey']) })
  const weather = { celsius: 7, sky: 'grey' as const }
  const about = { inputSchema, outputSchema, annotations: { readOnlyHint: true } }
  server.registerTool('weather', { title: 'Weather', description: 'The weather now.', ...about }, () => ({
    content: [{ type: 'text', text: JSON.stringify(weather) }],
    structuredContent: weather,
  }))
  server.registerTool(
    'measure',
    { description: 'The same, as an object beside no words.', ...about },
    () => ({
      content: [{ type: 'text', text: ' ' }],
      structuredContent: weather,
    }),
  )
  server.registerTool('astray', { description: 'An object that is not as declared.', ...about }, () => ({
    content: [],
    structuredContent: { celsius: 'warm', sky: 'clear' },
  }))
}

/** Tools with results that contain more than text. */
function registerParts(server: McpServer): void {
  server.registerTool('chart', { description: 'Draws a chart.' }, () => ({
    content: [
      { type: 'text', text: 'Rain, by month:' },
      { type: 'image', data: pixel, mimeType: 'image/png' },
      { type: 'audio', data: pixel, mimeType: 'audio/wav' },
      { type: 'resource_link', uri: 'file:///rain.csv', name: 'rain.csv' },
      { type: 'resource', resource: { uri: 'file:///rain.csv', text: 'month,mm' } },
      { type: 'text', text: 'It rains in May.' },
    ],
  }))
}

/** A tool that can fail, and one that reports its progress. */
function registerWork(server: McpServer): void {
  const inputSchema = z.object({ dividend: z.number(), divisor: z.number() })
  server.registerTool('divide', { description: 'Divides.', inputSchema }, ({ dividend, divisor }) => {
    if (divisor === 0) throw new Error('nothing is divided by zero')
    return { content: [{ type: 'text', text: String(dividend / divisor) }] }
  })
  server.registerTool('count', { description: 'Counts to three.' }, async ctx => {
    const { progressToken = 'nobody asked' } = ctx.mcpReq._meta ?? {}
    for (const progress of [1, 2, 3]) {
      const params = { progressToken, progress, total: 3 }
      await ctx.mcpReq.notify({ method: 'notifications/progress', params })
      await ctx.mcpReq.log('info', `at ${progress}`)
    }
    return { content: [{ type: 'text', text: 'three' }] }
  })
}
