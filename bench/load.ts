import { Agent, request } from 'undici'

/** Returns the requests per second that one URL serves, over a fixed number of connections. */
export async function throughput(
  url: string,
  options: { seconds: number; connections: number; headers?: Record<string, string> },
): Promise<number> {
  const dispatcher = new Agent({ connections: options.connections, pipelining: 1 })
  const end = performance.now() + options.seconds * 1_000
  let answered = 0
  const started = performance.now()
  await Promise.all(
    Array.from({ length: options.connections }, async () => {
      while (performance.now() < end) {
        const { statusCode, body } = await request(url, { dispatcher, headers: options.headers })
        await body.dump()
        if (statusCode !== 200) throw new Error(`${url}: ${statusCode}`)
        answered++
      }
    }),
  )
  const seconds = (performance.now() - started) / 1_000
  await dispatcher.close()
  return answered / seconds
}
