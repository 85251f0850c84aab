const settings = 'settings of the workspace, which all members can read'

/** Routes that have no content of documents, with the reason. */
export const routesWithoutContent: ReadonlyMap<string, string> = new Map([
  ['workspaces.show', settings],
  ['workspaces.testConnection', 'tests the connection to the database'],
  ['connect.snippets', 'examples of client configurations'],
  ['connect.verify', 'tests the MCP server of the workspace'],
  ['chunkPreview.create', 'returns only the text of the uploaded file'],
  ['mcp.listen', 'a stream without messages'],
  ['mcp.end', 'has no response body'],
  ...['chunkingServices', 'embeddingServices', 'rerankingServices', 'llmServices'].flatMap(topic =>
    ['list', 'create', 'show', 'update', 'delete'].map((name): [string, string] => [
      `${topic}.${name}`,
      settings,
    ]),
  ),
  ...[
    'list',
    'create',
    'show',
    'update',
    'delete',
    'testConnection',
    'tools',
    'review',
    'showSignIn',
    'beginSignIn',
    'finishSignIn',
    'endSignIn',
  ].map((name): [string, string] => [`mcpServers.${name}`, settings]),
  ['kb.rename', settings],
  ['kb.clearInsights', 'deletes questions of principals, and needs manage:access'],
  ['filters.update', 'changes a condition, which all members can read'],
  ['filters.delete', 'deletes a condition, which all members can read'],
  ['agentTemplates.listIn', 'templates of the product'],
  ...['list', 'create', 'createFromTemplate', 'show', 'update', 'tools'].map((name): [string, string] => [
    `agents.${name}`,
    settings,
  ]),
  ['openai.models', 'names of agents, which all members can read'],
])
