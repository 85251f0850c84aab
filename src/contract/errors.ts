/** Registry entry of an error code: the HTTP status, and a hint on what to do next. */
interface ErrorDefinition {
  readonly status: number
  readonly hint: string
}

const serviceInUseHint = 'First delete the knowledge bases that use the service.'
const signInAgainHint = 'Start the sign-in again. If it fails again, check the client registration.'

/** Hint for a runtime in rescue mode. */
export const rescueHint = 'Fix the cause, then send POST /setup/restart. GET /setup-status shows the state.'

/**
 * All values of `error.code`. The name and status of a code never change.
 *
 * @see docs/errors.md
 */
export const errorRegistry = {
  access_denied: { status: 400, hint: 'The identity provider denied the sign-in. Start it again.' },
  agent_not_found: { status: 404, hint: 'List the agents of the workspace and use one of their IDs.' },
  agent_template_not_found: { status: 404, hint: 'List the agent templates and use one of their IDs.' },
  agent_tool_unresolved: {
    status: 422,
    hint: 'Use the IDs of tools that are available in the workspace, or remove the entry.',
  },
  account_selection_required: {
    status: 400,
    hint: 'Start the sign-in again, and choose an account at the identity provider.',
  },
  api_key_not_found: {
    status: 404,
    hint: 'List the keys of the workspace. A revoked key cannot be revoked or rotated.',
  },
  archive_damaged: {
    status: 422,
    hint: 'Nothing was changed. Use another copy of the file, or create it again.',
  },
  archive_not_supported: {
    status: 422,
    hint: 'Check that it is the right file. If a newer version of Workbase created it, update Workbase.',
  },
  attachment_limit_exceeded: {
    status: 409,
    hint: 'Remove an attachment from the conversation, or start another conversation.',
  },
  attachment_not_found: {
    status: 404,
    hint: 'List the attachments of the conversation and use one of their IDs.',
  },
  authorization_pending: {
    status: 400,
    hint: 'Approve the sign-in in the browser, and continue to poll at the same interval.',
  },
  cascade_incomplete: {
    status: 500,
    hint: 'The workspace still exists. Repeat the delete request to finish.',
  },
  chat_answer_failed: {
    status: 502,
    hint: 'See the message for the reason from the provider. Then retry, or use another LLM service.',
  },
  chat_disabled: {
    status: 503,
    hint: 'Configure a chat provider, or give the agent an LLM service.',
  },
  chat_image_not_found: {
    status: 404,
    hint: 'Use an index from the images field of the message.',
  },
  chat_message_not_found: {
    status: 404,
    hint: 'List the messages of the conversation and use one of their IDs.',
  },
  chat_not_found: {
    status: 404,
    hint: 'List the conversations of the agent (chats in MCP tools) and use one of their IDs.',
  },
  chunking_service_in_use: { status: 409, hint: serviceInUseHint },
  chunking_service_not_found: {
    status: 404,
    hint: 'List the chunking services of the workspace and use one of their IDs.',
  },
  collection_name_taken: { status: 409, hint: 'Choose another name, or attach the existing collection.' },
  collection_not_found: {
    status: 404,
    hint: 'List the collections that can be attached and use one of their names.',
  },
  collection_unavailable: {
    status: 503,
    hint: 'Retry in a moment. If it fails again, test the connection to the store of the workspace.',
  },
  conflict: {
    status: 409,
    hint: 'To repeat a change, first read the resource again. To create a resource, choose another ID.',
  },
  control_plane_dns_unresolvable: {
    status: 503,
    hint: 'Check the host name of the control plane in the configuration.',
  },
  consent_required: {
    status: 400,
    hint: 'Start the sign-in again, and give consent at the identity provider.',
  },
  control_plane_forbidden: {
    status: 503,
    hint: 'Grant the missing permissions to the control plane credential.',
  },
  control_plane_unauthorized: {
    status: 503,
    hint: 'Check the control plane credential in the configuration.',
  },
  control_plane_unavailable: {
    status: 503,
    hint: 'Check that the data directory or the database is reachable, then retry.',
  },
  control_plane_unreachable: {
    status: 503,
    hint: 'Check the address of the control plane and the network connection to it.',
  },
  conversation_not_found: {
    status: 404,
    hint: 'List the conversations of the agent and use one of their IDs.',
  },
  data_api_error: {
    status: 502,
    hint: 'Find this request ID in the runtime log to see why the Data API rejected the request.',
  },
  data_api_unavailable: { status: 503, hint: 'Check the endpoint of the workspace, and retry in a moment.' },
  device_authorize_failed: {
    status: 502,
    hint: 'Try again. If it fails again, check the client registration at the identity provider.',
  },
  device_flow_not_supported: {
    status: 501,
    hint: 'Sign in with an API key, or use an identity provider with a device endpoint.',
  },
  device_token_failed: { status: 502, hint: signInAgainHint },
  dimension_mismatch: {
    status: 400,
    hint: 'Send vectors with the dimension of the embedding service of the knowledge base.',
  },
  docling_unavailable: {
    status: 503,
    hint: 'Start the document converter (Docling), or send parser=native.',
  },
  document_not_found: {
    status: 404,
    hint: 'List the documents of the knowledge base and use one of their IDs.',
  },
  draining: { status: 503, hint: 'The runtime is shutting down. Retry when it is running again.' },
  driver_unavailable: { status: 503, hint: 'Use a workspace kind that this runtime supports.' },
  embedding_dimension_mismatch: {
    status: 400,
    hint: 'Create an embedding service with the dimension that its model returns.',
  },
  embedding_service_in_use: { status: 409, hint: serviceInUseHint },
  embedding_service_not_found: {
    status: 404,
    hint: 'List the embedding services of the workspace and use one of their IDs.',
  },
  embedding_unavailable: {
    status: 503,
    hint: 'Check the endpoint of the embedding service. Also check that its credential is set and released.',
  },
  empty_document: {
    status: 422,
    hint: 'The file contains no text. Convert it to a file with text (for a scan, use OCR), then send it again.',
  },
  empty_file: { status: 400, hint: 'Send a file with at least one byte.' },
  expired_token: { status: 400, hint: 'The code has expired. Start the sign-in again.' },
  extraction_failed: {
    status: 422,
    hint: 'Check that the file opens in another program and has the right extension.',
  },
  folder_limit_exceeded: { status: 409, hint: 'Remove the description of another folder first.' },
  folder_not_described: { status: 404, hint: 'List the described folders, and use one of their paths.' },
  forbidden: {
    status: 403,
    hint: 'Ask a workspace administrator for a key of this workspace that has the missing scope.',
  },
  forbidden_origin: {
    status: 403,
    hint: 'Add the host to runtime.allowedHosts or the origin to runtime.allowedOrigins, or set runtime.publicOrigin.',
  },
  headers_too_large: { status: 431, hint: 'Send at most 200 headers, with less than 32 KB in total.' },
  hybrid_not_supported: { status: 501, hint: 'Send hybrid=false.' },
  identity_provider_unavailable: { status: 503, hint: 'Retry in a moment. Your session remains valid.' },
  internal_error: { status: 500, hint: 'Find this request ID in the runtime log.' },
  invalid_callback: { status: 400, hint: 'Start the sign-in again from the beginning.' },
  invalid_chunker: {
    status: 400,
    hint: 'Correct the chunk sizes. To list the chunkers, send GET /api/v1/chunkers.',
  },
  invalid_cursor: {
    status: 400,
    hint: 'Start again without a cursor, and use nextCursor only for the list that returned it.',
  },
  interaction_required: {
    status: 400,
    hint: 'Start the sign-in again, and follow the instructions of the identity provider.',
  },
  invalid_grant: {
    status: 400,
    hint: 'The code or token is no longer valid at the identity provider. Start the sign-in again.',
  },
  invalid_metadata: {
    status: 400,
    hint: 'Send a flat object. Its values must be strings, numbers, booleans or null.',
  },
  invalid_multipart: { status: 400, hint: 'Send multipart/form-data with a boundary and a complete body.' },
  invalid_parser: { status: 400, hint: 'Set parser to auto, native or docling.' },
  invalid_playground_command: {
    status: 400,
    hint: 'Send a command object whose only key is the value of commandName. If the command needs a collection or a table, also send its name.',
  },
  invalid_request: { status: 400, hint: 'Send the fields that the route requires.' },
  invalid_state: { status: 400, hint: 'The sign-in was already used or has expired. Start it again.' },
  invalid_visible_to: {
    status: 400,
    hint: 'Send a non-empty array of principal IDs, or ["*"] for everyone.',
  },
  invalid_scope: {
    status: 400,
    hint: 'Set auth.oidc.client.scopes to scopes that the identity provider offers.',
  },
  job_not_found: {
    status: 404,
    hint: 'List the jobs of the workspace. Finished jobs are deleted after their retention time.',
  },
  kb_name_must_match_collection: {
    status: 400,
    hint: 'Give the knowledge base the same name as the collection that you attach.',
  },
  kb_name_taken: { status: 409, hint: 'Choose another name. Names are unique in a workspace.' },
  knowledge_base_not_found: {
    status: 404,
    hint: 'List the knowledge bases of the workspace and use one of their IDs.',
  },
  knowledge_filter_not_found: {
    status: 404,
    hint: 'List the filters of the knowledge base and use one of their IDs.',
  },
  list_records_not_supported: { status: 501, hint: 'Use a workspace whose store can list records.' },
  llm_credential_missing: {
    status: 503,
    hint: 'Set the credential that the service refers to, and release it for the host of the service.',
  },
  llm_model_no_images: {
    status: 422,
    hint: 'Choose a model that reads images, or send the message without them.',
  },
  llm_model_not_chat: { status: 422, hint: 'Choose a model that supports chat completions.' },
  llm_model_unavailable: { status: 422, hint: 'Choose a model from GET /api/v1/llm-models.' },
  llm_provider_unsupported: { status: 422, hint: 'Set the provider to openrouter, openai or ollama.' },
  llm_service_in_use: {
    status: 409,
    hint: 'First select another LLM service for the agents that use this one.',
  },
  llm_service_not_found: {
    status: 404,
    hint: 'List the LLM services of the workspace and use one of their IDs.',
  },
  login_required: { status: 400, hint: 'Start the sign-in again, and sign in at the identity provider.' },
  mcp_server_not_found: {
    status: 404,
    hint: 'List the MCP servers of the workspace and use one of their IDs.',
  },
  mcp_sign_in_failed: {
    status: 502,
    hint: 'Check the URL and the OAuth fields of the MCP server, then start the sign-in again.',
  },
  missing_file: { status: 400, hint: 'Send the file, with its file name, in the form part named file.' },
  no_refresh_token: { status: 401, hint: 'Sign in again, because this session cannot be renewed.' },
  not_configured: { status: 404, hint: 'Configure auth.oidc.client to offer browser sign-in.' },
  not_found: { status: 404, hint: 'Check the path and the method against /docs.' },
  overloaded: {
    status: 503,
    hint: 'Wait for the number of seconds in Retry-After, then retry. If it happens often, send fewer or smaller requests at once.',
  },
  payload_too_large: { status: 413, hint: 'Send a smaller body, or split it into several requests.' },
  policy_denied: { status: 403, hint: 'Ask a workspace administrator for access.' },
  policy_principal_required: {
    status: 401,
    hint: 'Sign in as a principal of the workspace.',
  },
  principal_not_found: {
    status: 404,
    hint: 'List the principals of the workspace and use one of their IDs.',
  },
  rate_limited: {
    status: 429,
    hint: 'Wait for the number of seconds in Retry-After, then send the request again.',
  },
  refresh_failed: { status: 401, hint: 'Sign in again.' },
  rerank_not_supported: { status: 501, hint: 'Send rerank=false.' },
  reranking_service_in_use: {
    status: 409,
    hint: 'First remove the service from the knowledge bases and agents that use it.',
  },
  reranking_service_not_found: {
    status: 404,
    hint: 'List the reranking services of the workspace and use one of their IDs.',
  },
  restore_conflict: {
    status: 409,
    hint: 'Rename or delete the other document, then restore this one again.',
  },
  secret_release_not_found: {
    status: 404,
    hint: 'List the releases and use one of their IDs. To change a release from the configuration file, edit the file.',
  },
  server_error: { status: 400, hint: 'The identity provider failed. Start the sign-in again in a moment.' },
  session_too_large: {
    status: 502,
    hint: 'Configure the identity provider to issue smaller tokens, with fewer claims or groups.',
  },
  setup_restart_unavailable: { status: 503, hint: 'Restart the server process yourself.' },
  slow_down: { status: 400, hint: 'Add five seconds to the polling interval.' },
  token_exchange_failed: { status: 502, hint: signInAgainHint },
  temporarily_unavailable: {
    status: 400,
    hint: 'The identity provider is busy. Start the sign-in again in a moment.',
  },
  token_validation_failed: {
    status: 401,
    hint: 'Sign in again. If it fails again, check the issuer and the audience.',
  },
  unauthorized: {
    status: 401,
    hint: 'Send a valid API key or an access token from the identity provider as a bearer token.',
  },
  unsupported_file_type: {
    status: 415,
    hint: 'Send a text file, or a file in a format that the documentation lists.',
  },
  unauthorized_client: { status: 400, hint: 'Check the client registration at the identity provider.' },
  unsupported_response_type: {
    status: 400,
    hint: 'Allow the code flow in the client registration at the identity provider.',
  },
  unsupported_workspace_kind: {
    status: 422,
    hint: 'Use a workspace of a kind that supports this operation.',
  },
  validation_error: {
    status: 400,
    hint: 'Correct the field that the message names. The schema is at /docs.',
  },
  vector_collection_not_allowed: {
    status: 400,
    hint: 'Omit the field that the message names.',
  },
  vector_collection_required: { status: 400, hint: 'Set vectorCollection to a collection that has vectors.' },
  vectorize_service_mismatch: {
    status: 400,
    hint: 'Use an embedding service with the provider and model that computed the vectors of the collection.',
  },
  workspace_database_conflict: {
    status: 409,
    hint: 'Use another URL or keyspace. Two workspaces cannot share a database.',
  },
  workspace_misconfigured: {
    status: 422,
    hint: 'Set the URL, keyspace and credential that workspaces of this kind need.',
  },
  workspace_name_conflict: { status: 409, hint: 'Choose another name. Workspace names are unique.' },
  workspace_not_found: {
    status: 404,
    hint: 'List the workspaces that you can access and use one of their IDs.',
  },
} as const satisfies Record<string, ErrorDefinition>

export type ErrorCode = keyof typeof errorRegistry

/** All codes in alphabetical order. */
export const errorCodes = Object.keys(errorRegistry).sort() as ErrorCode[]

export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(errorRegistry, value)
}

/** Returns the anchor of a code in the documentation. */
export function errorDocs(code: ErrorCode): string {
  return `docs/errors.md#${code.replaceAll('_', '-')}`
}

/**
 * Body of every error response.
 *
 * @see docs/requirements.md#S7.1-01
 */
export interface ErrorEnvelope {
  error: { code: string; message: string; requestId: string; hint?: string; docs?: string }
}

/**
 * The only error class of the server and of clients whose messages are shown to users.
 *
 * Any other thrown error is a bug and is reported as `internal_error`.
 */
export class WbError extends Error {
  override readonly name = 'WbError'
  readonly status: number
  readonly hint: string

  /**
   * @param code     registered code, which sets the default status and hint
   * @param message  description of the problem for users; must not contain secrets
   * @param facts    `hint` and `status` override the defaults, `headers` are added to the response, and
   *   all other facts are only logged
   */
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly facts: {
      hint?: string
      status?: number
      requestId?: string
      headers?: Record<string, string | readonly string[]>
      [fact: string]: unknown
    } = {},
    options?: ErrorOptions,
  ) {
    super(message, options)
    this.status = facts.status ?? errorRegistry[code].status
    this.hint = facts.hint ?? errorRegistry[code].hint
  }
}

/** Returns the error for a request for which there is no capacity now. By default, the client can retry it after a second. */
export function overloaded(
  message: string,
  { cause, retryAfterSeconds = 1 }: { cause?: unknown; retryAfterSeconds?: number } = {},
): WbError {
  const headers = { 'retry-after': String(retryAfterSeconds) }
  return new WbError('overloaded', message, { headers }, { cause })
}
