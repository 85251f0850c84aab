import { serveOperations } from '../base/threads.ts'
import { api } from '../contract/index.ts'
import type { Topic } from '../contract/route.ts'
import type { DecodeOperations, RouteName } from './decode-thread.ts'
import { createDecoder, type DecodedBody } from './decoder.ts'

// Worker thread that decodes large request bodies, so that parsing and validation do not block other requests.
serveOperations(() => {
  const decoders = new Map<string, (bytes: Buffer) => DecodedBody>()
  const decoderOf = ({ topic, operation }: RouteName) => {
    const name = `${topic}.${operation}`
    const { body } = (api as Readonly<Record<string, Topic>>)[topic]![operation]!
    const decoder = decoders.get(name) ?? createDecoder(body!)
    decoders.set(name, decoder)
    return decoder
  }
  const ops: DecodeOperations = {
    decode: ({ bytes, ...route }) =>
      decoderOf(route)(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)),
  }
  return { ops, close() {} }
})
