import { api } from '../contract/index.ts'
import type { Route, Topic } from '../contract/route.ts'

const workspacePath = '/api/v1/workspaces/:workspaceId'

/** All routes below a workspace, by topic and operation: `documents.list`. */
export const workspaceRoutes: ReadonlyMap<string, Route> = new Map(
  Object.entries<Topic>(api).flatMap(([topic, routes]) =>
    Object.entries<Route>(routes)
      .filter(([, { path }]) => path.startsWith(workspacePath))
      .map(([operation, route]): [string, Route] => [`${topic}.${operation}`, route]),
  ),
)

/** Returns method and path, with `W` for the workspace, `KB` for the knowledge base, and `C` for the conversation. */
export function routeLine({ method, path }: Pick<Route, 'method' | 'path'>): string {
  const short = path
    .replace(workspacePath, 'W')
    .replace('W/knowledge-bases/:knowledgeBaseId', 'KB')
    .replace('W/agents/:agentId/conversations/:conversationId', 'C')
    .replaceAll(/:(\w+)/g, '{$1}')
  return `${method} ${short}`
}
