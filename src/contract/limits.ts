/**
 * Limits that apply to clients. Text lengths are in UTF-16 code units.
 *
 * @see docs/http.md#limits
 */
export const limits = {
  jsonBodyBytes: 10_000_000,
  ingestBodyBytes: 50_000_000,
  /** Maximum number of lines of an exported file in one request of an import. */
  archiveLinesPerImport: 10_000,
  /** Length of the lines of an exported file, in characters, that ends a page. The line that exceeds it is included. */
  archivePageChars: 1_000_000,
  authBodyBytes: 16_384,
  formTextBytes: 1_000_000,
  formParts: 64,
  headerBytes: 32_768,
  /** Maximum number of headers in a request. Each header takes about 100 bytes of memory plus its content. */
  headerCount: 200,
  jsonDepth: 64,
  jsonNodes: 1_000_000,
  batchLinesInProgress: 32,

  pageDefault: 50,
  pageMax: 200,
  /**
   * Length of an answer with many items, in characters of JSON. An answer ends early after the item that exceeds it, so that
   * it takes little memory and time.
   */
  answerChars: 8_000_000,
  cursorChars: 512,
  chunkPageMax: 1_000,

  ingestTextChars: 20_000_000,
  searchTextChars: 8_192,
  recordTextChars: 16_384,
  vectorLength: 16_384,
  recordsPerUpsert: 500,
  documentsPerBulkDelete: 100,
  filesPerCheck: 1_000,
  topKDefault: 10,
  topKMax: 1_000,
  knowledgeBasesPerSearch: 50,
  /** Number of recent searches of a knowledge base whose times are kept, by mode. */
  searchesMeasured: 256,
  /** Maximum number of passages of a document in grouped results. */
  perGroupMax: 100,
  /** Maximum number of chunks that are joined on each side of a result. */
  neighborsMax: 3,
  /** Maximum length of joined chunks. A longer chunk is returned alone. */
  joinedTextChars: 16_384,
  /** Maximum number of boosts in a search. */
  boosts: 10,
  boostFactorMin: 0.1,
  boostFactorMax: 10,
  halfLifeDaysMin: 0.01,
  halfLifeDaysMax: 36_500,

  filterDepth: 32,
  filterNodes: 1_000,
  /** Maximum number of nodes of the filters of all boosts, which are evaluated for each candidate. */
  boostNodes: 100,

  nameChars: 1_000,
  descriptionChars: 10_000,
  /** Maximum length of the file name of a document, which can contain a path. */
  pathChars: 4_096,
  savedFilterChars: 32_768,
  /** Maximum number of described folders of a knowledge base. */
  describedFolders: 100,
  /** Maximum length of the description of a folder, which is embedded with each chunk below it. */
  folderDescriptionChars: 500,
  folderPathChars: 1_000,
  hostChars: 259,

  keyLabelChars: 120,
  keyGraceSeconds: 2_592_000,
  keyGraceSecondsDefault: 86_400,
  principalIdChars: 128,
  /** Maximum number of places of a file, such as pages, in an imported chunk. */
  placesPerChunk: 10_000,
  /** Maximum time limit that a service can set for its requests, in milliseconds. */
  requestTimeoutMs: 600_000,
  /** Maximum length of the subject of a user, as in OpenID Connect Core 1.0 section 2. */
  subjectChars: 255,
  /** Maximum number of principals in the field `visibleTo` of a document or record. */
  visibleToEntries: 1_000,
  /** Maximum length of the metadata of a document, as JSON. */
  metadataChars: 65_536,
  principalLabelChars: 200,
  principalAttributes: 64,
  principalAttributeChars: 1_024,

  policyChars: 4_000,
  policyDepth: 32,
  policyAuditMax: 500,
  policyAuditDefault: 100,
  policyDiffDocumentsMax: 100,
  policyDiffDocumentsDefault: 10,
  /** Number of items of a list, and length of a value or a name, that an answer about access shows. */
  shownItems: 20,
  shownValueChars: 200,
  shownNameChars: 1_000,
  /** Maximum number of conditions in an explanation. */
  policyReasonsMax: 50,

  /** Maximum length of a question in the query log. Longer questions are cut. */
  loggedQuestionChars: 500,
  /** Maximum number of logged searches that insights read. */
  loggedSearchesRead: 10_000,
  /** Number of questions in each list of insights. */
  insightQuestionsMax: 100,
  insightQuestionsDefault: 10,
  /** Coverage, and similarity by the sentence model, from which results count as good. */
  goodCoverage: 0.5,
  goodSimilarity: 0.3,

  trafficMax: 200,
  trafficDefault: 50,
  playgroundNameChars: 128,

  chatMessageChars: 32_000,
  /** Maximum number of images in a message. `imageBytes` is the maximum decoded size of each image. */
  messageImages: 4,
  imageBytes: 5_000_000,
  /** Maximum body of a message: base64 images, the text, and extra space for JSON escapes. */
  messageBodyBytes: 28_000_000,
  attachmentBodyBytes: 20_000_000,
  attachmentTextChars: 1_000_000,
  /** Maximum number of chunkers that are compared at once, and of chunks of each that are returned. */
  previewedChunkers: 4,
  previewedChunks: 5_000,
  attachmentsPerConversation: 10,
  /** Maximum total length of the attached texts of a conversation. */
  attachedTextChars: 2_000_000,
  agentNameChars: 200,
  agentDescriptionChars: 2_000,
  agentPromptChars: 131_072,
  stopChars: 100,
  stopSequences: 4,
  conversationTitleChars: 2_000,
  completionBodyBytes: 4_000_000,
  completionMessages: 1_000,
  completionMessageChars: 131_072,
  completionMessageParts: 1_000,
  temperatureMax: 2,
  /** Maximum length of the query of a conversation search. */
  conversationSearchChars: 200,
  toolIdChars: 512,
  idsPerList: 1_000,
  mcpServerLabelChars: 200,
  endpointUrlChars: 2_048,
  oauthClientIdChars: 2_048,
  oauthScopes: 50,
  oauthScopeChars: 200,
  oauthStateChars: 200,
  oauthCodeChars: 8_192,

  managedValueChars: 4_096,

  ignoredFieldsReported: 10,
  ignoredFieldBytes: 64,
} as const
