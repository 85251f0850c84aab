/**
 * Matches IDs of tools of MCP servers, the runtime or a database. Any other ID is accepted unchanged.
 *
 * @see docs/agents.md#tools
 */
export const namespacedId = /^(?:mcp|native|astra):/

/** Tools of the runtime that are available only if the configuration enables them. */
export const nativeTools = { fetch: 'native:fetch', webSearch: 'native:web_search' } as const

/** @param server  ID of an MCP server: a UUID if registered, or its name in the configuration */
export function mcpToolId(server: string, tool: string): string {
  return `mcp:${server}:${tool}`
}

/** Returns the server and the tool in an ID; undefined for a tool without an MCP server. */
export function parseMcpToolId(id: string): { server: string; tool: string } | undefined {
  const [, server, tool] = /^mcp:([^:]+):(.*)$/s.exec(id) ?? []
  return server === undefined || tool === undefined ? undefined : { server, tool }
}
