import type { ChatProvider } from '../../contract/providers.ts'

/**
 * Explains why a model list is built in instead of the provider's, and how to change that. The runtime
 * requests the list from every provider that offers it without a key: all but OpenAI.
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
      'ollama serve    starts it; use --endpoint URL if it runs elsewhere',
      'ollama pull llama3.2    downloads a model',
    ]
  return [
    `built-in list: ${provider} did not return its models`,
    'Run the command again to retry. --model accepts any other model of the provider.',
  ]
}
