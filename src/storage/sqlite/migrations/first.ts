/**
 * The first schema: a table for each type of control row, and tables for the content of collections.
 *
 * A control row is stored as JSON, from which the columns for keys and indexes are computed. In this schema, the name
 * of index `x` of table `t` in `storage/tables.ts` is `t_x`. If `ordinal` is the last column of an index in that file,
 * it is omitted here, because every SQLite index ends with the rowid implicitly.
 *
 * Each collection has a table for its vectors (`vec_<collection>_<generation>`) and one for its full-text index
 * (`fts_<collection>`), which are created with the collection. Record numbers are never reused. `record_gone` lists
 * the latest deletions.
 */
export const firstMigration = `
CREATE TABLE settings (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  name GENERATED ALWAYS AS (body ->> '$.name') VIRTUAL
);
CREATE UNIQUE INDEX settings_key ON settings (name);

CREATE TABLE workspaces (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  name GENERATED ALWAYS AS (body ->> '$.name') VIRTUAL,
  kind GENERATED ALWAYS AS (body ->> '$.kind') VIRTUAL,
  url GENERATED ALWAYS AS (body ->> '$.url') VIRTUAL,
  createdAt GENERATED ALWAYS AS (body ->> '$.createdAt') VIRTUAL
);
CREATE UNIQUE INDEX workspaces_key ON workspaces (workspaceId);
CREATE UNIQUE INDEX workspaces_unique_name ON workspaces (name);
CREATE INDEX workspaces_byCreation ON workspaces (createdAt, workspaceId);
CREATE INDEX workspaces_byName ON workspaces (name);
CREATE INDEX workspaces_byUrl ON workspaces (url);
CREATE INDEX workspaces_byKind ON workspaces (kind);

CREATE TABLE api_keys (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  keyId GENERATED ALWAYS AS (body ->> '$.keyId') VIRTUAL,
  prefix GENERATED ALWAYS AS (body ->> '$.prefix') VIRTUAL,
  principalId GENERATED ALWAYS AS (body ->> '$.principalId') VIRTUAL,
  createdAt GENERATED ALWAYS AS (body ->> '$.createdAt') VIRTUAL
);
CREATE UNIQUE INDEX api_keys_key ON api_keys (workspaceId, keyId);
CREATE UNIQUE INDEX api_keys_unique_prefix ON api_keys (prefix);
CREATE INDEX api_keys_byWorkspace ON api_keys (workspaceId, createdAt, keyId);
CREATE INDEX api_keys_byPrincipal ON api_keys (workspaceId, principalId);

CREATE TABLE principals (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  principalId GENERATED ALWAYS AS (body ->> '$.principalId') VIRTUAL
);
CREATE UNIQUE INDEX principals_key ON principals (workspaceId, principalId);
CREATE INDEX principals_byWorkspace ON principals (workspaceId, principalId);

CREATE TABLE chunking_services (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  chunkingServiceId GENERATED ALWAYS AS (body ->> '$.chunkingServiceId') VIRTUAL
);
CREATE UNIQUE INDEX chunking_services_key ON chunking_services (workspaceId, chunkingServiceId);
CREATE INDEX chunking_services_byWorkspace ON chunking_services (workspaceId);

CREATE TABLE embedding_services (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  embeddingServiceId GENERATED ALWAYS AS (body ->> '$.embeddingServiceId') VIRTUAL
);
CREATE UNIQUE INDEX embedding_services_key ON embedding_services (workspaceId, embeddingServiceId);
CREATE INDEX embedding_services_byWorkspace ON embedding_services (workspaceId);

CREATE TABLE reranking_services (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  rerankingServiceId GENERATED ALWAYS AS (body ->> '$.rerankingServiceId') VIRTUAL
);
CREATE UNIQUE INDEX reranking_services_key ON reranking_services (workspaceId, rerankingServiceId);
CREATE INDEX reranking_services_byWorkspace ON reranking_services (workspaceId);

CREATE TABLE llm_services (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  llmServiceId GENERATED ALWAYS AS (body ->> '$.llmServiceId') VIRTUAL
);
CREATE UNIQUE INDEX llm_services_key ON llm_services (workspaceId, llmServiceId);
CREATE INDEX llm_services_byWorkspace ON llm_services (workspaceId);

CREATE TABLE knowledge_bases (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  name GENERATED ALWAYS AS (body ->> '$.name') VIRTUAL,
  vectorCollection GENERATED ALWAYS AS (body ->> '$.vectorCollection') VIRTUAL,
  chunkingServiceId GENERATED ALWAYS AS (body ->> '$.chunkingServiceId') VIRTUAL,
  embeddingServiceId GENERATED ALWAYS AS (body ->> '$.embeddingServiceId') VIRTUAL,
  rerankingServiceId GENERATED ALWAYS AS (body ->> '$.rerankingServiceId') VIRTUAL
);
CREATE UNIQUE INDEX knowledge_bases_key ON knowledge_bases (workspaceId, knowledgeBaseId);
CREATE UNIQUE INDEX knowledge_bases_unique_collection ON knowledge_bases (workspaceId, vectorCollection);
CREATE INDEX knowledge_bases_byWorkspace ON knowledge_bases (workspaceId);
CREATE INDEX knowledge_bases_byName ON knowledge_bases (workspaceId, name);
CREATE INDEX knowledge_bases_byCollection ON knowledge_bases (workspaceId, vectorCollection);
CREATE INDEX knowledge_bases_byChunkingService ON knowledge_bases (workspaceId, chunkingServiceId);
CREATE INDEX knowledge_bases_byEmbeddingService ON knowledge_bases (workspaceId, embeddingServiceId);
CREATE INDEX knowledge_bases_byRerankingService ON knowledge_bases (workspaceId, rerankingServiceId);

CREATE TABLE knowledge_filters (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  knowledgeFilterId GENERATED ALWAYS AS (body ->> '$.knowledgeFilterId') VIRTUAL
);
CREATE UNIQUE INDEX knowledge_filters_key ON knowledge_filters (workspaceId, knowledgeBaseId, knowledgeFilterId);
CREATE INDEX knowledge_filters_byWorkspace ON knowledge_filters (workspaceId);
CREATE INDEX knowledge_filters_byKnowledgeBase ON knowledge_filters (workspaceId, knowledgeBaseId);

CREATE TABLE documents (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  documentId GENERATED ALWAYS AS (body ->> '$.documentId') VIRTUAL,
  sourceFilename GENERATED ALWAYS AS (body ->> '$.sourceFilename') VIRTUAL,
  ingestKey GENERATED ALWAYS AS (body ->> '$.ingestKey') VIRTUAL,
  nameKey GENERATED ALWAYS AS (body ->> '$.nameKey') VIRTUAL
);
CREATE UNIQUE INDEX documents_key ON documents (workspaceId, knowledgeBaseId, documentId);
CREATE UNIQUE INDEX documents_unique_ingestKey ON documents (ingestKey);
CREATE UNIQUE INDEX documents_unique_nameKey ON documents (nameKey);
CREATE INDEX documents_byWorkspace ON documents (workspaceId);
CREATE INDEX documents_byKnowledgeBase ON documents (workspaceId, knowledgeBaseId);
CREATE INDEX documents_byFilename ON documents (workspaceId, knowledgeBaseId, sourceFilename);
CREATE INDEX documents_byIngestKey ON documents (ingestKey);

CREATE TABLE jobs (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  jobId GENERATED ALWAYS AS (body ->> '$.jobId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL,
  documentId GENERATED ALWAYS AS (body ->> '$.documentId') VIRTUAL,
  status GENERATED ALWAYS AS (body ->> '$.status') VIRTUAL,
  leaseUntil GENERATED ALWAYS AS (body ->> '$.leaseUntil') VIRTUAL
);
CREATE UNIQUE INDEX jobs_key ON jobs (workspaceId, jobId);
CREATE INDEX jobs_byWorkspace ON jobs (workspaceId);
CREATE INDEX jobs_byStatus ON jobs (status);
CREATE INDEX jobs_byLease ON jobs (status, leaseUntil);
CREATE INDEX jobs_byDocument ON jobs (workspaceId, knowledgeBaseId, documentId);

CREATE TABLE agents (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  agentId GENERATED ALWAYS AS (body ->> '$.agentId') VIRTUAL,
  createdAt GENERATED ALWAYS AS (body ->> '$.createdAt') VIRTUAL,
  llmServiceId GENERATED ALWAYS AS (body ->> '$.llmServiceId') VIRTUAL,
  rerankingServiceId GENERATED ALWAYS AS (body ->> '$.rerankingServiceId') VIRTUAL
);
CREATE UNIQUE INDEX agents_key ON agents (workspaceId, agentId);
CREATE INDEX agents_byWorkspace ON agents (workspaceId, createdAt, agentId);
CREATE INDEX agents_byLlmService ON agents (workspaceId, llmServiceId);
CREATE INDEX agents_byRerankingService ON agents (workspaceId, rerankingServiceId);

CREATE TABLE conversations (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  agentId GENERATED ALWAYS AS (body ->> '$.agentId') VIRTUAL,
  conversationId GENERATED ALWAYS AS (body ->> '$.conversationId') VIRTUAL,
  ownerPrincipalId GENERATED ALWAYS AS (body ->> '$.ownerPrincipalId') VIRTUAL,
  createdAt GENERATED ALWAYS AS (body ->> '$.createdAt') VIRTUAL
);
CREATE UNIQUE INDEX conversations_key ON conversations (workspaceId, conversationId);
CREATE INDEX conversations_byWorkspace ON conversations (workspaceId, createdAt, conversationId);
CREATE INDEX conversations_byAgent ON conversations (workspaceId, agentId, createdAt, conversationId);
CREATE INDEX conversations_byOwner ON conversations (workspaceId, ownerPrincipalId, createdAt, conversationId);

CREATE TABLE messages (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  conversationId GENERATED ALWAYS AS (body ->> '$.conversationId') VIRTUAL,
  messageId GENERATED ALWAYS AS (body ->> '$.messageId') VIRTUAL,
  messageTs GENERATED ALWAYS AS (body ->> '$.messageTs') VIRTUAL
);
CREATE UNIQUE INDEX messages_key ON messages (workspaceId, conversationId, messageId);
CREATE INDEX messages_byWorkspace ON messages (workspaceId);
CREATE INDEX messages_byConversation ON messages (workspaceId, conversationId, messageTs, messageId);

CREATE TABLE mcp_servers (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  mcpServerId GENERATED ALWAYS AS (body ->> '$.mcpServerId') VIRTUAL
);
CREATE UNIQUE INDEX mcp_servers_key ON mcp_servers (workspaceId, mcpServerId);
CREATE INDEX mcp_servers_byWorkspace ON mcp_servers (workspaceId, mcpServerId);

CREATE TABLE audit (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  auditId GENERATED ALWAYS AS (body ->> '$.auditId') VIRTUAL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  action GENERATED ALWAYS AS (body ->> '$.action') VIRTUAL
);
CREATE UNIQUE INDEX audit_key ON audit (auditId);
CREATE INDEX audit_byWorkspace ON audit (workspaceId);
CREATE INDEX audit_byAction ON audit (workspaceId, action);

CREATE TABLE policy_audit (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL,
  decisionId GENERATED ALWAYS AS (body ->> '$.decisionId') VIRTUAL,
  auditDay GENERATED ALWAYS AS (body ->> '$.auditDay') VIRTUAL,
  principalId GENERATED ALWAYS AS (body ->> '$.principalId') VIRTUAL,
  knowledgeBaseId GENERATED ALWAYS AS (body ->> '$.knowledgeBaseId') VIRTUAL
);
CREATE UNIQUE INDEX policy_audit_key ON policy_audit (workspaceId, decisionId);
CREATE INDEX policy_audit_byWorkspace ON policy_audit (workspaceId);
CREATE INDEX policy_audit_byDay ON policy_audit (workspaceId, auditDay);
CREATE INDEX policy_audit_byPrincipal ON policy_audit (workspaceId, principalId);
CREATE INDEX policy_audit_byKnowledgeBase ON policy_audit (workspaceId, knowledgeBaseId);

CREATE TABLE secret_releases (
  ordinal INTEGER PRIMARY KEY AUTOINCREMENT,
  version INTEGER NOT NULL,
  body TEXT NOT NULL,
  releaseId GENERATED ALWAYS AS (body ->> '$.releaseId') VIRTUAL,
  ref GENERATED ALWAYS AS (body ->> '$.ref') VIRTUAL,
  workspaceId GENERATED ALWAYS AS (body ->> '$.workspaceId') VIRTUAL
);
CREATE UNIQUE INDEX secret_releases_key ON secret_releases (releaseId);
CREATE INDEX secret_releases_byRef ON secret_releases (ref);
CREATE INDEX secret_releases_byWorkspace ON secret_releases (workspaceId);

CREATE TABLE collection (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  workspace_id TEXT NOT NULL,
  name TEXT NOT NULL,
  dimension INTEGER NOT NULL,
  metric TEXT NOT NULL,
  lexical INTEGER NOT NULL,
  fitted INTEGER NOT NULL,
  generation INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 0,
  records INTEGER NOT NULL DEFAULT 0,
  unfitted INTEGER NOT NULL DEFAULT 0,
  fitted_records INTEGER NOT NULL DEFAULT 0,
  fitted_through INTEGER NOT NULL DEFAULT 0,
  staging INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL DEFAULT 0,
  gone INTEGER NOT NULL DEFAULT 0,
  UNIQUE (workspace_id, name)
) STRICT;
CREATE INDEX collection_unfitted ON collection (id) WHERE fitted = 1 AND unfitted > 0;

CREATE TABLE record (
  record INTEGER PRIMARY KEY AUTOINCREMENT,
  collection INTEGER NOT NULL,
  id TEXT NOT NULL,
  document_id TEXT,
  chunk_index INTEGER,
  title TEXT,
  text TEXT,
  payload TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_by_id ON record (collection, id);
CREATE INDEX record_by_document ON record (collection, document_id, chunk_index, id);
CREATE INDEX record_by_collection ON record (collection);

CREATE TABLE record_gone (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  collection INTEGER NOT NULL,
  record INTEGER NOT NULL
) STRICT;
CREATE INDEX record_gone_by_collection ON record_gone (collection);

CREATE TABLE embedder_model (
  collection INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  terms TEXT NOT NULL,
  weights BLOB NOT NULL,
  PRIMARY KEY (collection, generation)
) STRICT;
`
