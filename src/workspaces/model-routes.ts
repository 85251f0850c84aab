import type { Handlers } from '../access/caller.ts'
import type { llmModels } from '../contract/models.ts'
import type { ChatProvider } from '../contract/providers.ts'
import type { Catalogue } from '../models/catalogue.ts'

/** @param checkUrl  throws `validation_error` for an address that may not be called */
export function llmModelHandlers(
  catalogue: Catalogue,
  usual: ChatProvider,
  checkUrl: (field: string, url: string) => void,
): Handlers<typeof llmModels> {
  return {
    list: async ({ query: { provider = usual, baseUrl } }, { signal }) => {
      if (baseUrl !== undefined) checkUrl('baseUrl', baseUrl)
      return { status: 200, body: await catalogue.list(provider, baseUrl, signal) }
    },
  }
}
