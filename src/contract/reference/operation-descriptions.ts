import { destinationAccess } from '../services/fields.ts'

/** Descriptions of the operations whose route has no `description`, by operation ID. */
export const operationDescriptions: Readonly<Record<string, string>> = {
  'operational.root': 'Returns the name and version of the runtime, and the path of its API reference.',
  'operational.health': 'Returns 200 as long as the server process is running. Use it as a liveness probe.',
  'operational.ready': 'Returns 503 while the runtime cannot handle requests. Use it as a readiness probe.',
  'operational.version': 'Returns the version, commit and build time of the runtime.',
  'operational.features': 'Reports which optional features of the API are available.',
  'operational.errorCodes': 'Returns all error codes with their status, hint and documentation.',
  'operational.docs': 'Returns this API reference as a single HTML page that does not load other files.',
  'operational.openapi': 'Returns the OpenAPI document of the API. You can generate typed clients from it.',
  'operation.metrics':
    'Returns counters, gauges and histograms of the server process, for Prometheus to scrape.',
  'operation.vendorCli': 'The runtime never looks for the Astra CLI. The route exists for older clients.',
  'operation.vendorProfiles':
    'The runtime never reads profiles of the Astra CLI. The route exists for older clients.',
  'setup.restart':
    'Finishes the requests in progress, then reopens the runtime with the current configuration and environment. The process, address and port do not change.',
  'auth.config': 'Returns how callers can authenticate, and the paths of the sign-in routes.',
  'auth.login':
    'Redirects a browser to the identity provider. Open this address in a browser, not with an HTTP client.',
  'auth.callback': 'Receives the redirect from the identity provider and sets the session cookie.',
  'protectedResources.runtime':
    'Returns the authorization servers that issue access tokens for the API (RFC 9728).',
  'auth.me': 'Returns the authenticated caller with its scopes and workspaces. Use it to check a credential.',
  'auth.refresh': 'Renews the session cookie before it expires.',
  'auth.logout': 'Deletes the session cookie. You stay signed in at the identity provider.',
  'auth.deviceAuthorize':
    'Starts a device sign-in (RFC 8628). Show the user the returned code and address, then poll `POST /auth/device/token`.',
  'auth.deviceToken':
    'Returns tokens once the user has approved the device. Until then, it returns the error `authorization_pending`.',
  'auth.deviceRefresh': 'Exchanges the refresh token of a device for new tokens.',
  'workspaces.list': 'Returns the workspaces that the caller can access, oldest first.',
  'workspaces.create':
    'Creates a workspace with default services and agents. The kind of store cannot be changed later.',
  'workspaces.show': 'Returns a workspace.',
  'workspaces.update':
    'Changes only the fields that you send. With row-level access, a change of `url`, `keyspace` or `credentials` also requires the scope `manage:access`.',
  'workspaces.delete':
    'Deletes a workspace with its knowledge bases, documents, services, agents and keys. This cannot be undone.',
  'workspaces.testConnection':
    'Connects to the store of a workspace. Returns 200 even if the connection fails. The result is in `ok`.',
  'connect.snippets':
    'Returns ready-to-use code for agent frameworks and MCP clients, with the addresses of this workspace filled in.',
  'connect.verify':
    'Lists the MCP tools of a workspace as a client would. Returns 200 even if that fails. The result is in `ok`.',
  'connect.traffic':
    'Returns the latest tool calls that MCP clients made in a workspace, newest first. With row-level access, a caller without the scope `manage:access` gets only its own calls.',
  'apiKeys.list': 'Returns the keys of a workspace, including revoked ones. Tokens are never returned.',
  'apiKeys.create':
    'Creates an API key. Only this response contains the token. You cannot grant scopes that you do not have, unless you have the scope `manage`.',
  'apiKeys.show': 'Returns a key without its token.',
  'apiKeys.rotate':
    'Creates a new key with the same scopes. The old token keeps working until the grace period ends.',
  'apiKeys.revoke': 'Revokes a key. Further requests with it are rejected. The key stays in the list.',
  'principals.list': 'Returns the principals of a workspace, sorted by ID.',
  'principals.show': 'Returns a principal.',
  'policy.preview':
    'Compiles a policy for a principal without applying it. Returns 200 even if the policy is not valid. The result is in `ok`.',
  'policy.audit':
    'Returns up to 500 policy decisions about documents, newest first. For more, use `GET /api/v1/workspaces/{workspaceId}/audit/decisions`, which returns pages.',
  'chunkers.list': 'Returns the built-in chunkers. Use their `engine` and `strategy` in a chunking service.',
  'chunkingServices.list': 'Returns the chunking services of a workspace, oldest first.',
  'chunkingServices.create': `Stores settings for splitting text into chunks. Knowledge bases refer to the service by ID. ${destinationAccess}`,
  'chunkingServices.show': 'Returns a chunking service.',
  'chunkingServices.update': `Changes only the fields that you send. Documents that are already ingested keep their chunks. ${destinationAccess}`,
  'chunkingServices.delete': `Deletes a chunking service. The request fails while a knowledge base uses the service. ${destinationAccess}`,
  'embeddingServices.list': 'Returns the embedding services of a workspace, oldest first.',
  'embeddingServices.create': `Stores the settings for calling an embedding model. Knowledge bases refer to the service by ID. ${destinationAccess}`,
  'embeddingServices.show': 'Returns an embedding service.',
  'embeddingServices.update': `Changes only the fields that you send. While a knowledge base uses the service, you cannot change fields that affect its vectors, such as the model. ${destinationAccess}`,
  'embeddingServices.delete': `Deletes an embedding service. The request fails while a knowledge base uses the service. ${destinationAccess}`,
  'rerankingServices.list': 'Returns the reranking services of a workspace, oldest first.',
  'rerankingServices.create': `Stores the settings for calling a reranking model. Searches of the knowledge bases that use the service call it. ${destinationAccess}`,
  'rerankingServices.show': 'Returns a reranking service.',
  'rerankingServices.update': `Changes only the fields that you send. ${destinationAccess}`,
  'rerankingServices.delete': `Deletes a reranking service. The request fails while a knowledge base or an agent uses the service. ${destinationAccess}`,
  'llmServices.list': 'Returns the LLM services of a workspace, oldest first.',
  'llmServices.show': 'Returns an LLM service.',
  'llmServices.delete': `Deletes an LLM service. The request fails while an agent uses the service. ${destinationAccess}`,
  'llmModels.list':
    'Returns the models of a provider. If the provider cannot be reached, returns a short built-in list.',
  'secretReleases.create':
    'Allows services to send a secret of the runtime to one host. Without a release, a secret reference in a service is stored but never used.',
  'secretReleases.delete': 'Deletes a release. Services can no longer send the secret to its host.',
  'mcp.end': 'Always succeeds and has no effect, because the server does not keep sessions.',
  'mcpServers.list': 'Returns the MCP servers of a workspace, sorted by ID.',
  'mcpServers.create': `Registers an MCP server. Agents can call the tools that you add to their \`toolIds\`. ${destinationAccess}`,
  'mcpServers.show': 'Returns an MCP server.',
  'mcpServers.update': `Changes only the fields that you send. If \`url\` changes, the tools must be accepted again. ${destinationAccess}`,
  'mcpServers.delete': `Deletes an MCP server. Agents that use its tools continue without them. ${destinationAccess}`,
  'mcpServers.review': `Accepts new or changed tools. Send each tool with the hash that you reviewed. If the tool has changed since, it is not accepted. ${destinationAccess}`,
  'mcpServers.showSignIn':
    'Returns whether the caller is signed in to an MCP server with `authType` `oauth2`. Tokens are never returned.',
  'mcpServers.beginSignIn':
    'Returns the address of the sign-in page. After the sign-in, the browser returns to `redirectUri` with `state` and `code`. Send both to finish the sign-in within ten minutes.',
  'mcpServers.finishSignIn':
    'Exchanges the authorization code for tokens and stores them. Only the caller who started the sign-in can finish it, and only once.',
  'mcpServers.endSignIn':
    'Deletes the tokens of the caller, and revokes them if the authorization server supports that.',
  'kb.list': 'Returns the knowledge bases of a workspace, oldest first.',
  'kb.show':
    'Returns a knowledge base with the state of its built-in embedder. The state depends on all documents, so it is omitted for a caller who may see only some of them.',
  'kb.update':
    'Changes only the fields that you send. You cannot change the name, the chunking service, the embedding service or the collection.',
  'kb.delete': 'Deletes a knowledge base and its documents. An attached collection is kept.',
  'kb.adoptable':
    'Returns the collections in the store. `attached` is true if a knowledge base uses the collection. To use one of the others, create a knowledge base with `attach`.',
  'filters.list': 'Returns the saved filters of a knowledge base, oldest first.',
  'filters.create': 'Saves a filter. To use it in a search, send its ID as `knowledgeFilterId`.',
  'filters.show': 'Returns a saved filter.',
  'filters.update': 'Changes only the fields that you send. A new `filter` replaces the old one as a whole.',
  'filters.delete': 'Deletes a saved filter. Later searches that refer to it fail.',
  'documents.list': 'Returns the documents of a knowledge base, oldest first.',
  'documents.create':
    'Creates a document without text. Use it if your program stores the chunks of the document as records.',
  'documents.show': 'Returns a document with the progress of its ingest.',
  'documents.update':
    'Changes only the fields that you send. Changes to metadata and visibility also apply to the chunks.',
  'documents.delete':
    'Deletes a document and its chunks. It stays in the trash, from which it can be restored, for the time in `runtime.trash.retentionHours`.',
  'documents.bulkDelete':
    'Deletes up to 100 documents. They stay in the trash unless `permanently` is true. Returns 200 even if some documents could not be deleted. The response lists those documents in `failed`.',
  'trash.list':
    'Returns the deleted documents that can be restored, in order of deletion. You see only those that you could see before.',
  'trash.restore':
    'Restores a document with its ID, its visibility and its chunks. Fails if another document has its text or its file name now.',
  'trash.bulkRestore':
    'Restores up to 100 documents. Returns 200 even if some documents could not be restored. The response lists those in `failed`.',
  'trash.bulkDelete':
    'Deletes up to 100 documents from the trash, so that they cannot be restored. Returns 200 even if some could not be deleted. The response lists those in `failed`.',
  'documents.ingest':
    'Splits a text into chunks, then embeds and indexes them. Returns 201 when the document is searchable, 202 with a job for `?async=true`, and 200 if a document with this text or file name exists.',
  'records.upsert':
    'Stores up to 500 records directly, without a document. A record replaces the one with the same ID.',
  'records.delete':
    'Deletes a record. If there is no such record, returns 200 with the value false in `deleted`.',
  'jobs.list': 'Returns the jobs of a workspace, newest first.',
  'jobs.show': 'Returns a job. Poll it, or follow its events.',
  'agentTemplates.list': 'Returns the built-in templates for agents.',
  'agentTemplates.listIn':
    'Returns the built-in templates for agents, which are the same in every workspace.',
  'agents.list': 'Returns the agents of a workspace, oldest first.',
  'agents.create':
    'Creates an agent. Without `llmServiceId` it uses the chat provider of the runtime. With row-level access, an agent that may call external tools without an approval after reading documents also requires the scope `manage:access`.',
  'agents.createFromTemplate':
    'Creates an agent from a template. The agent uses the oldest LLM service of the workspace.',
  'agents.show': 'Returns an agent.',
  'agents.update':
    'Changes only the fields that you send. Lists and `toolRules` are replaced as a whole. With row-level access, an agent that may call external tools without an approval after reading documents also requires the scope `manage:access`.',
  'agents.delete': 'Deletes an agent with its conversations and messages.',
  'agents.tools':
    'Returns the built-in tools and the tools of registered MCP servers. Tools of servers that cannot be reached are omitted.',
  'conversations.listAll':
    'Returns the conversations with all agents of a workspace, newest first. Conversations that the caller may not see are omitted.',
  'conversations.list':
    'Returns the conversations with an agent, newest first. Conversations that the caller may not see are omitted.',
  'conversations.create':
    'Starts a conversation. `knowledgeBaseIds` limits the knowledge bases that the agent searches.',
  'conversations.show': 'Returns a conversation without its messages.',
  'conversations.update': 'Changes only the fields that you send.',
  'conversations.delete': 'Deletes a conversation with its messages and attachments.',
  'attachments.list': 'Returns the attachments of a conversation without their texts, oldest first.',
  'attachments.show': 'Returns an attachment with its text.',
  'messages.list': 'Returns the messages of a conversation, oldest first.',
  'messages.show': 'Returns a message.',
  'chat.send':
    'Sends a message and returns it with the complete answer. Use the streamed route to show the answer as it is written.',
  'chat.stream':
    'Sends a message and streams the answer as server-sent events: `user-message`, then `token` and tool events, and finally `done` or `error`.',
}
