import { serveOperations } from '../base/threads.ts'
import { SentenceEncoder } from './sentence-encoder.ts'
import { createSentenceOperations } from './sentence-operations.ts'

serveOperations((model: string | undefined) => ({
  ops: createSentenceOperations(new SentenceEncoder(model)),
  close: () => {},
}))
