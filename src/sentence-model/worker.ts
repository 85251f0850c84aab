import { serveOperations } from '../base/threads.ts'
import { FastestEncoder, type FastestEncoderOptions } from './fastest-encoder.ts'
import { createSentenceOperations } from './sentence-operations.ts'

serveOperations((options: FastestEncoderOptions) => {
  const encoder = new FastestEncoder(options)
  return { ops: createSentenceOperations(encoder), close: () => encoder.close() }
})
