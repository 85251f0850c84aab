import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { discardBody, readBody } from '../../base/read-body.ts'
import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { Config } from '../../config/schema.ts'
import { resolveEndpointSecret } from '../../models/endpoint.ts'
import type { Outbound } from '../../models/outbound.ts'
import { createExecutableTool } from './executable-tool.ts'
import { webSearchTool } from './runtime-tools.ts'
import type { Tool, ToolContext } from './tool.ts'
import { previewText, ToolError } from './tool-result.ts'

type WebSearchSettings = Config['chat']['tools']['webSearch']

export interface WebSearchDependencies {
  readonly clock: Clock
  readonly outbound: Outbound
  readonly environment: ConfigEnvironment
  readonly settings: WebSearchSettings
}

const endpoint = new URL('https://api.tavily.com/search')
const responseBytesMax = 2_000_000
const titleCharsMax = 300
const addressCharsMax = 2_000
const summaryCharsMax = 2_000

/**
 * The fields of the response that this tool uses.
 *
 * @see https://docs.tavily.com/documentation/api-reference/endpoint/search
 */
const SearchResponse = z.object({
  results: z.array(z.object({ title: z.string().catch(''), url: z.string(), content: z.string().catch('') })),
})

/** Creates the tool that searches the web with the operator's API key. */
export function createWebSearchTool(deps: WebSearchDependencies, apiKeyRef: string): Tool {
  const { maxResults } = deps.settings
  const tool = webSearchTool(maxResults)
  const search = ({ query, limit = maxResults }: z.output<typeof tool.input>, context: ToolContext) =>
    searchWeb(deps, apiKeyRef, { query, max_results: limit }, context)
  return createExecutableTool(tool, search, { readsUntrusted: true })
}

async function searchWeb(
  { clock, outbound, environment, settings }: WebSearchDependencies,
  apiKeyRef: string,
  body: { query: string; max_results: number },
  context: ToolContext,
): Promise<string> {
  const createFailure = (_source: string, reason: string) => new ToolError(`the web search ${reason}`)
  const key = resolveEndpointSecret({ environment, createFailure }, apiKeyRef, endpoint)
  const request = async (signal: AbortSignal) => {
    const response = await outbound(endpoint, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/json',
        'user-agent': 'workbase',
        authorization: `Bearer ${key}`,
      },
      body: JSON.stringify(body),
      signal,
    })
    if (response.status !== 200) {
      await discardBody(response.body)
      throw new ToolError(`the web search failed with status ${response.status}`)
    }
    return (await readBody(response.body, responseBytesMax)).toString()
  }
  try {
    return formatResults(
      await withTimeout(clock, settings.timeoutMs, request, context.signal),
      body.max_results,
    )
  } catch (error) {
    if (error instanceof ToolError || context.signal.aborted) throw error
    const reason =
      error instanceof TimedOut
        ? `did not respond within ${settings.timeoutMs} ms`
        : 'is currently unavailable'
    throw new ToolError(`the web search ${reason}`)
  }
}

/** @throws SyntaxError, ZodError  the response does not have the expected format */
function formatResults(responseText: string, limit: number): string {
  const { results } = SearchResponse.parse(JSON.parse(responseText))
  if (results.length === 0) return 'Nothing was found.'
  const entries = results
    .slice(0, limit)
    .map(({ title, url, content }, index) =>
      [
        `${index + 1}. ${previewText(title, titleCharsMax)}`,
        previewText(url, addressCharsMax),
        previewText(content, summaryCharsMax),
      ].join('\n'),
    )
  return entries.join('\n\n')
}
