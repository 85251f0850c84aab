/** A model provider with built-in support. */
interface Provider {
  /** Default address of services. By default, the key in `keyName` is released only to the host of this address. */
  readonly baseUrl: string
  /** Environment variable that usually contains the API key; null if no key is needed. */
  readonly keyName: string | null
}

/** @see docs/services.md */
export const providers = {
  openai: { baseUrl: 'https://api.openai.com/v1', keyName: 'OPENAI_API_KEY' },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', keyName: 'OPENROUTER_API_KEY' },
  cohere: { baseUrl: 'https://api.cohere.com/v2', keyName: 'COHERE_API_KEY' },
  ollama: { baseUrl: 'http://localhost:11434/v1', keyName: null },
} as const satisfies Record<string, Provider>

/**
 * Protocols of reranking services, by the provider of the service. `cohere` is also the protocol of Jina, vLLM and other
 * servers; `tei` is that of Text Embeddings Inference, which has no default address.
 */
export const rerankProtocols = ['cohere', 'tei'] as const
export type RerankProtocol = (typeof rerankProtocols)[number]

export function isRerankProtocol(name: string): name is RerankProtocol {
  return (rerankProtocols as readonly string[]).includes(name)
}

/** Provider name of the built-in embedder. */
export const builtInProvider = 'workbase'

/** Provider name of embedding models that `wb models add` added to the machine of the runtime. */
export const localProvider = 'onnx'

export type ProviderName = keyof typeof providers

export function isProviderName(name: string): name is ProviderName {
  return Object.hasOwn(providers, name)
}

/**
 * Returns true if requests to an address require an API key, because it is the default host of a provider with
 * keys. Other servers that support the protocol of the provider may work without a key.
 */
export function needsKey(provider: ProviderName, { host }: Pick<URL, 'host'>): boolean {
  const { baseUrl, keyName } = providers[provider]
  return keyName !== null && host === new URL(baseUrl).host
}

/** Host of each provider that requires an API key, by the secret reference of the key. */
export const hostOfProviderKey: ReadonlyMap<string, string> = new Map(
  Object.values(providers).flatMap(({ baseUrl, keyName }) =>
    keyName ? [[`env:${keyName}`, new URL(baseUrl).host] as const] : [],
  ),
)

/** Providers of chat models. */
export const chatProviders = ['openrouter', 'openai', 'ollama'] as const
export type ChatProvider = (typeof chatProviders)[number]

export function isChatProvider(name: string): name is ChatProvider {
  return (chatProviders as readonly string[]).includes(name)
}
