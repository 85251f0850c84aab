/**
 * Requests at a fixed pace from a process of its own, however slow the answers are. The pace is the one argument, as
 * JSON; what came of it is printed as JSON.
 */
import { Agent, request } from 'undici'
import { wrongToken } from './tokens.ts'

export interface Pace {
  url: string
  perSecond: number
  seconds: number
  /** An address of this machine that the requests come from. */
  from: string
  /** One that is sent each time, or what each time another wrong token begins with. */
  token: string | { prefix: string }
  /** Sent as JSON by POST; a GET is sent without it. */
  body?: object
}

export interface Paced {
  /** From the sending of each request to the end of its answer. */
  ms: number[]
  /** How many answers had each status. */
  statuses: Record<string, number>
  /** How fast the requests really went. */
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
