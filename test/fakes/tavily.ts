import type { Outbound } from '../../src/models/outbound.ts'

export interface TavilyFake {
  /** Replaces the network. */
  readonly outbound: Outbound
  readonly received: {
    readonly url: string
    readonly authorization: string | undefined
    readonly body: unknown
  }[]
}

/**
 * Creates a search service that follows the Tavily documentation.
 *
 * @param key      other keys are rejected with 401
 * @param results  titles of what it finds, for any query
 * @see https://docs.tavily.com/documentation/api-reference/endpoint/search
 */
export function tavilyFake(key: string, results: readonly string[]): TavilyFake {
  const received: TavilyFake['received'] = []
  return {
    received,
    outbound: async (url, { headers, body }) => {
      const { authorization } = headers
      const request = JSON.parse(body ?? '{}') as { query: string; max_results: number }
      received.push({ url: url.href, authorization, body: request })
      if (authorization !== `Bearer ${key}`)
        return Response.json(
          { detail: { error: 'Unauthorized: missing or invalid API key.' } },
          { status: 401 },
        )
      return Response.json({
        query: request.query,
        follow_up_questions: null,
        answer: null,
        images: [],
        results: results.slice(0, request.max_results).map((title, at) => ({
          title,
          url: `https://example.com/${at}`,
          content: `about ${title}`,
          score: 1 / (at + 1),
          raw_content: null,
        })),
        response_time: 0.5,
      })
    },
  }
}
