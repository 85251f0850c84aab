/**
 * Matches tool IDs with a namespace: `mcp:` for tools of MCP servers, `native:` for tools of the runtime, and
 * `astra:` for tools of a database. Other IDs are accepted unchanged.
 *
 * @see docs/agents.md#tools
 */
export const namespacedId = /^(?:mcp|native|astra):/

/** IDs of the runtime tools that are available only if the configuration enables them. */
export const nativeTools = { fetch: 'native:fetch', webSearch: 'native:web_search' } as const

/** @param server  UUID of a registered MCP server, or the name of a server in the configuration */
export function mcpToolId(server: string, tool: string): string {
  return `mcp:${server}:${tool}`
}

/** Splits the ID of an MCP tool into its server and its tool name. Returns undefined for other IDs. */
export function parseMcpToolId(id: string): { server: string; tool: string } | undefined {
  const [, server, tool] = /^mcp:([^:]+):(.*)$/s.exec(id) ?? []
  return server === undefined || tool === undefined ? undefined : { server, tool }
}
