/**
 * Sends bodies over many connections at once until standard input ends. The only argument is a `BodyFlood`, as JSON.
 * Prints the number of connections by response status, as JSON.
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
const statuses = tally((await answers).map(status => status ?? 'no response'))
process.stdout.write(JSON.stringify(Object.fromEntries(statuses)))
