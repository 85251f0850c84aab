/**
 * Sends requests at a fixed rate from its own process, without waiting for responses. Takes a `Pace` as its
 * only argument, as JSON. Prints a `Paced` as JSON.
 */
import { Agent, request } from 'undici'
import { wrongToken } from './tokens.ts'

export interface Pace {
  url: string
  perSecond: number
  seconds: number
  /** Local address to send the requests from. */
  from: string
  /** A token to send each time, or the prefix of a different wrong token for each request. */
  token: string | { prefix: string }
  /** Body of a POST request, sent as JSON; without it, GET is used. */
  body?: object
}

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
