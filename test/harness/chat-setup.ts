import type { Clock } from '../../src/base/clock.ts'
import { systemClock } from '../../src/base/clock.ts'
import { createEnvironment } from '../../src/config/config-environment.ts'
import type { AnswerPart } from '../../src/models/chat/answer-splitter.ts'
import type { ChatClient, Completion } from '../../src/models/chat/completion.ts'
import { openLearnedModels } from '../../src/models/chat/learned-models.ts'
import { type ChatConfig, openChat } from '../../src/models/chat/open-chat.ts'
import type { ModelService } from '../../src/models/endpoint.ts'
import { EndpointGuard } from '../../src/models/endpoint-guard.ts'
import { openOutboundNetwork } from '../../src/models/outbound.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'

export interface ChatSetupOptions {
  readonly service?: Partial<ModelService>
  readonly chat?: Partial<ChatConfig>
  readonly released?: boolean
  readonly variables?: Record<string, string>
  readonly retriesMax?: number
  readonly clock?: Clock
}

/** A fake provider, and chat clients that reach it over sockets. */
export interface ChatSetup {
  readonly provider: ChatServer
  open(setting?: ChatSetupOptions): ChatClient
  close(): Promise<void>
}

export async function setUpChat(): Promise<ChatSetup> {
  const network = openOutboundNetwork({ guard: new EndpointGuard({ blocksPrivate: false, exceptions: [] }) })
  const provider = await startChatServer()
  const learned = openLearnedModels({ clock: systemClock, outbound: network.send })
  return {
    provider,
    open: ({ service, chat, released = true, variables, retriesMax = 0, clock = systemClock } = {}) => {
      const whole: ModelService = {
        name: 'talks',
        provider: 'openai',
        modelName: 'some-model',
        workspaceId: '11111111-1111-4111-8111-111111111111',
        endpointBaseUrl: provider.url,
        endpointPath: null,
        credentialRef: 'env:KEY',
        requestTimeoutMs: null,
        ...service,
      }
      return openChat(whole, {
        environment: createEnvironment({ KEY: 'sk-secret', OWN_KEY: 'sk-own', ...variables }),
        isReleased: async () => released,
        outbound: network.send,
        clock,
        learned,
        retriesMax,
        chat: {
          provider: 'openrouter',
          tokenRef: 'env:OWN_KEY',
          baseUrl: null,
          allowDataCollection: false,
          ...chat,
        },
      })
    },
    async close() {
      await network.close()
      await provider.close()
    },
  }
}

/** The result of a stream. */
export interface StreamResult {
  /** Text deltas. */
  readonly pieces: string[]
  /** All parts in order, including text. */
  readonly parts: AnswerPart[]
  readonly completion?: Completion
  readonly failure?: Error
}

/** Reads a stream to its end. @param onPiece  called for each part before the next is read */
export async function readStream(
  stream: AsyncGenerator<AnswerPart, Completion, undefined>,
  onPiece: (part: AnswerPart) => void = () => {},
): Promise<StreamResult> {
  const parts: AnswerPart[] = []
  const pieces: string[] = []
  try {
    for (;;) {
      const { value, done } = await stream.next()
      if (done) return { pieces, parts, completion: value }
      parts.push(value)
      if (value.kind === 'text') pieces.push(value.delta)
      onPiece(value)
    }
  } catch (error) {
    return { pieces, parts, failure: error as Error }
  }
}
