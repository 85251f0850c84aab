import type { Clock } from '../../base/clock.ts'
import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { Config } from '../../config/schema.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { Outbound } from '../../models/outbound.ts'
import { createExecutableTool } from './executable-tool.ts'
import { openFetchTool } from './fetch-tool.ts'
import { dataApiTool } from './runtime-tools.ts'
import type { Tool } from './tool.ts'
import { ToolError } from './tool-result.ts'
import { openWebSearchTool } from './web-search-tool.ts'

export type ToolSettings = Config['chat']['tools']

export interface NativeParts {
  readonly clock: Clock
  readonly environment: ConfigEnvironment
  readonly settings: ToolSettings
  readonly outbound: Outbound
  /** Connects to public addresses, and to private ones that the operator allowed. Does not follow redirects. */
  readonly fetch: typeof fetch
}

/**
 * Returns a function that lists the tools of a workspace in addition to the built-in ones. They depend on the
 * configuration and on the kind of workspace.
 */
export function openNativeTools(parts: NativeParts): (workspace: Workspace) => readonly Tool[] {
  const { fetch: page, webSearch } = parts.settings
  const native: Tool[] = []
  if (page.enabled) native.push(openFetchTool({ ...parts, settings: page }))
  if (webSearch.enabled && webSearch.provider !== null && webSearch.apiKeyRef !== null)
    native.push(openWebSearchTool({ ...parts, settings: webSearch }, webSearch.apiKeyRef))
  const dataApi = createExecutableTool(dataApiTool, () => {
    throw new ToolError('this runtime has no driver that reads the database of the workspace')
  })
  return ({ kind }) => (kind === 'astra' || kind === 'hcd' ? [...native, dataApi] : native)
}
