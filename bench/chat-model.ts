/** Runs a fake model until standard input ends. Prints its URL as one line of JSON. */
import { startChatServer } from '../test/fakes/chat-server.ts'

const words = Number(process.argv[2] ?? 40)
const perSecond = Number(process.argv[3] ?? 0)

const model = await startChatServer()
const text = Array.from({ length: words }, (_, at) => `word${at}`).join(' ')
model.respond(() => ({ text, ...(perSecond > 0 && { tokensPerSecond: perSecond }) }))
console.log(JSON.stringify({ url: model.url }))
process.stdin.resume().on('end', () => model.close())
