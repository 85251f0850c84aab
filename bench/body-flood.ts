/**
 * Sends bodies by many connections at once until standard input ends. The flood is the one argument, as JSON; how many
 * connections were answered with each status is printed as JSON.
 */
import { once } from 'node:events'
import { type HeldBody, sendHeldBody, tally } from '../test/harness/body-attacks.ts'

export interface BodyFlood extends Omit<HeldBody, 'stop'> {
  readonly connections: number
}

const { connections, ...held } = JSON.parse(process.argv[2]!) as BodyFlood
const stop = new AbortController()
const answers = Promise.all(
  Array.from({ length: connections }, () => sendHeldBody({ ...held, stop: stop.signal })),
)
await once(process.stdin.resume(), 'end')
stop.abort()
const statuses = tally((await answers).map(status => status ?? 'none'))
process.stdout.write(JSON.stringify(Object.fromEntries(statuses)))
