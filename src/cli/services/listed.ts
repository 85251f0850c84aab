import type { ChatProvider } from '../../contract/providers.ts'

/**
 * Explains why a model list is built in instead of the provider's, and how to change that. The runtime
 * requests the list from every provider that offers it without a key: all but OpenAI.
 */
export function whyOurs(provider: ChatProvider): readonly string[] {
  if (provider === 'openai')
    return [
      'a list of ours: openai was not asked, as it tells its models to nobody without a key',
      '--model takes any other that your key may use',
    ]
  if (provider === 'ollama')
    return [
      'a list of ours: ollama was asked, and did not answer with models that it has',
      'ollama serve    starts it; --endpoint URL says where it is elsewhere',
      'ollama pull llama3.2    gives it a model',
    ]
  return [
    `a list of ours: ${provider} was asked, and did not answer with models`,
    'The runtime asks it over the network; the same command tries again. --model takes any other of its models.',
  ]
}
