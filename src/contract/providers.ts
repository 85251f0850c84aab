/** Model provider that the runtime supports by name. */
interface Provider {
  /** Default address of services. The default key is released only to its host. */
  readonly baseUrl: string
  /** Environment variable that usually contains the key; null if no key is needed. */
  readonly keyName: string | null
}

/** @see docs/services.md */
export const providers = {
  openai: { baseUrl: 'https://api.openai.com/v1', keyName: 'OPENAI_API_KEY' },
  openrouter: { baseUrl: 'https://openrouter.ai/api/v1', keyName: 'OPENROUTER_API_KEY' },
  cohere: { baseUrl: 'https://api.cohere.com/v2', keyName: 'COHERE_API_KEY' },
  ollama: { baseUrl: 'http://localhost:11434/v1', keyName: null },
} as const satisfies Record<string, Provider>

/** Provider name of the embedder that the runtime fits to the text of each knowledge base. */
export const builtInProvider = 'workbase'

export type ProviderName = keyof typeof providers

export function isProviderName(text: string): text is ProviderName {
  return Object.hasOwn(providers, text)
}

/**
 * Returns true if a provider requires a key at an address. Other servers with the same protocol may need
 * none.
 */
export function needsKey(provider: ProviderName, { host }: Pick<URL, 'host'>): boolean {
  const { baseUrl, keyName } = providers[provider]
  return keyName !== null && host === new URL(baseUrl).host
}

/** Host of each provider with a key, by the reference to that key. */
export const hostOfProviderKey: ReadonlyMap<string, string> = new Map(
  Object.values(providers).flatMap(({ baseUrl, keyName }) =>
    keyName ? [[`env:${keyName}`, new URL(baseUrl).host] as const] : [],
  ),
)

/** Providers of chat models: a gateway to many models, a vendor, and a local runtime. */
export const chatProviders = ['openrouter', 'openai', 'ollama'] as const
export type ChatProvider = (typeof chatProviders)[number]

export function isChatProvider(text: string): text is ChatProvider {
  return (chatProviders as readonly string[]).includes(text)
}
