import type { ChatProvider } from '../../contract/providers.ts'

/**
 * Explains why the built-in list of models was used instead of the provider's list, and how to change that. The runtime
 * requests the list from every provider that offers it without a key, which excludes OpenAI.
 */
export function explainBuiltInModels(provider: ChatProvider): readonly string[] {
  if (provider === 'openai')
    return [
      'built-in list: OpenAI does not list its models without a key',
      '--model accepts any other model that your key can use',
    ]
  if (provider === 'ollama')
    return [
      'built-in list: Ollama did not return its models',
      'ollama serve    starts Ollama; use --endpoint URL if it runs on another machine',
      'ollama pull llama3.2    downloads a model',
    ]
  return [
    `built-in list: ${provider} did not return its models`,
    'run the command again to retry; --model accepts any other model of the provider',
  ]
}
