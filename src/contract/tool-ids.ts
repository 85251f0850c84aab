/**
 * IDs of tools that belong to an MCP server, the runtime or a database. Any other ID is accepted unchanged.
 *
 * @see docs/agents.md#tools
 */
export const namespaced = /^(?:mcp|native|astra):/

/** Tools of the runtime that a workspace offers only where the configuration turns them on. */
export const nativeTools = { fetch: 'native:fetch', webSearch: 'native:web_search' } as const

/** @param server  id of an MCP server: of a registered one a UUID, else the name that the configuration gives it */
export function mcpToolId(server: string, tool: string): string {
  return `mcp:${server}:${tool}`
}

/** The server and the tool that an id names; undefined for a tool of no MCP server. */
export function ofServer(id: string): { server: string; tool: string } | undefined {
  const [, server, tool] = /^mcp:([^:]+):(.*)$/s.exec(id) ?? []
  return server === undefined || tool === undefined ? undefined : { server, tool }
}
