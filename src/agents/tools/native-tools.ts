import type { Clock } from '../../base/clock.ts'
import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { Config } from '../../config/schema.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import type { Outbound } from '../../models/outbound.ts'
import { createExecutableTool } from './executable-tool.ts'
import { createFetchTool } from './fetch-tool.ts'
import { dataApiTool } from './runtime-tools.ts'
import type { Tool } from './tool.ts'
import { ToolError } from './tool-result.ts'
import { createWebSearchTool } from './web-search-tool.ts'

export type ToolSettings = Config['chat']['tools']

export interface NativeToolsDependencies {
  readonly clock: Clock
  readonly environment: ConfigEnvironment
  readonly settings: ToolSettings
  readonly outbound: Outbound
  /** Connects to public addresses, and to private ones that the operator allowed. Does not follow redirects. */
  readonly fetch: typeof fetch
}

/**
 * Returns a function that lists the tools of a workspace that are not built in: those that the configuration enables,
 * and those for the kind of the workspace.
 */
export function openNativeTools(deps: NativeToolsDependencies): (workspace: Workspace) => readonly Tool[] {
  const { fetch: fetchSettings, webSearch } = deps.settings
  const native: Tool[] = []
  if (fetchSettings.enabled) native.push(createFetchTool({ ...deps, settings: fetchSettings }))
  if (webSearch.enabled && webSearch.provider !== null && webSearch.apiKeyRef !== null)
    native.push(createWebSearchTool({ ...deps, settings: webSearch }, webSearch.apiKeyRef))
  const dataApi = createExecutableTool(dataApiTool, () => {
    throw new ToolError('this runtime has no driver that reads the database of the workspace')
  })
  return ({ kind }) => (kind === 'astra' || kind === 'hcd' ? [...native, dataApi] : native)
}
