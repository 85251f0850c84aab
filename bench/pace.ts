/**
 * Sends requests at a fixed rate, without waiting for responses. The only argument is a `Pace`, as JSON. Prints a
 * `Paced` as JSON.
 */
import { Agent, request } from 'undici'
import { wrongToken } from './tokens.ts'

/** A load of requests at a fixed rate. */
export interface Pace {
  url: string
  perSecond: number
  seconds: number
  /** Local address to send the requests from. */
  from: string
  /** Token to send with every request, or a prefix: each request then sends another wrong token with this prefix. */
  token: string | { prefix: string }
  /** Body of a POST request, sent as JSON; without it, GET is used. */
  body?: object
}

/** Result of a {@link Pace}. */
export interface Paced {
  /** Time from each request to the end of its response, in milliseconds. */
  ms: number[]
  /** Number of responses by status. */
  statuses: Record<string, number>
  /** Actual rate of requests. */
  perSecond: number
}

const { url, perSecond, seconds, from, token, body: json } = JSON.parse(process.argv[2]!) as Pace
const dispatcher = new Agent({ connections: 128, pipelining: 1, localAddress: from })
const paced: Paced = { ms: [], statuses: {}, perSecond: 0 }

async function one(): Promise<void> {
  const bearer = typeof token === 'string' ? token : wrongToken(token.prefix)
  const began = performance.now()
  const { statusCode, body } = await request(url, {
    dispatcher,
    method: json ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${bearer}`, ...(json && { 'content-type': 'application/json' }) },
    body: json && JSON.stringify(json),
  })
  await body.dump()
  paced.ms.push(performance.now() - began)
  paced.statuses[statusCode] = (paced.statuses[statusCode] ?? 0) + 1
}

const sent: Promise<void>[] = []
const started = performance.now()
for (let at = 0; at < perSecond * seconds; at++) {
  const waitMs = started + (at * 1_000) / perSecond - performance.now()
  if (waitMs > 0) await new Promise(resolve => setTimeout(resolve, waitMs))
  sent.push(one())
}
paced.perSecond = sent.length / ((performance.now() - started) / 1_000)
await Promise.all(sent)
await dispatcher.close()
process.stdout.write(JSON.stringify(paced))
