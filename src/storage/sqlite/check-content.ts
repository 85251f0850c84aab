import { defaultSpace, type Metric } from '../content.ts'
import type { StoreCheck } from '../storage-driver.ts'
import { metrics, type SpaceTables, tablesOfSpace, textTable, vectorTable } from './collections.ts'
import { SqliteConnection } from './connection.ts'
import type Database from './driver.ts'
import { deletedDocumentTagsQuery } from './migrations/eighteenth.ts'
import { tagQueries } from './migrations/thirteenth.ts'
import { findPostingFaults, indexedRecords } from './postings/check-postings.ts'
import { listPostingIndexes } from './postings/index-rows.ts'
import { examplesMax, type ProblemQuery, runProblemQuery } from './problem-query.ts'
import { findQuantizationFaults } from './quantized-vectors.ts'

interface CheckedCollection {
  readonly id: number
  readonly lexical: 0 | 1
  readonly fullText: 0 | 1
  readonly reindex: 0 | 1
}

interface CheckedSpace extends SpaceTables {
  readonly collection: number
  readonly name: string
  readonly dimension: number
  readonly metric: Metric
}

/** SQL for the IDs of workspaces whose content is in this store. */
const localWorkspaces = `(SELECT workspaceId FROM workspaces WHERE kind = 'local')`

const nameOfCollection = `collection.workspace_id || '/' || collection.name`

/** SQL that joins collections with their vector spaces. */
const spacesOfCollections = 'collection JOIN vector_space ON vector_space.collection = collection.id'

/** SQL that joins knowledge bases with the collections that were created with them. */
const ownedCollections = `knowledge_bases JOIN collection
  ON collection.workspace_id = knowledge_bases.workspaceId AND collection.name = knowledge_bases.vectorCollection
  WHERE knowledge_bases.body ->> '$.owned' = 1`

/** SQL expression for the number of stored chunks of a document. */
const chunksOfDocument = `(SELECT count(*) FROM record JOIN collection ON collection.id = record.collection
  JOIN knowledge_bases ON knowledge_bases.workspaceId = collection.workspace_id
    AND knowledge_bases.vectorCollection = collection.name
  WHERE knowledge_bases.workspaceId = documents.workspaceId
    AND knowledge_bases.knowledgeBaseId = documents.knowledgeBaseId
    AND record.document_id = documents.documentId)`

const contentProblemQueries: readonly ProblemQuery[] = [
  ...['record', 'record_gone', 'embedder_model', 'vector_space'].map(table => ({
    check: `${table} rows without a collection`,
    selects: [
      `SELECT collection || '' AS example FROM ${table}
        WHERE collection NOT IN (SELECT id FROM collection)`,
    ],
  })),
  {
    check: 'chunks without a document',
    selects: [
      `SELECT record.id AS example FROM record JOIN (
          SELECT collection.id AS collection, knowledge_bases.workspaceId, knowledge_bases.knowledgeBaseId FROM ${ownedCollections}
        ) AS home ON home.collection = record.collection
        WHERE record.document_id IS NOT NULL AND NOT EXISTS (
          SELECT 1 FROM documents WHERE documents.workspaceId = home.workspaceId
            AND documents.knowledgeBaseId = home.knowledgeBaseId AND documents.documentId = record.document_id)`,
    ],
  },
  {
    check: 'documents with a wrong number of chunks',
    selects: [
      `SELECT documentId AS example FROM documents
        WHERE body ->> '$.status' = 'ready' AND ingestKey IS NOT NULL AND workspaceId IN ${localWorkspaces}
          AND NOT EXISTS (SELECT 1 FROM knowledge_bases WHERE knowledge_bases.workspaceId = documents.workspaceId
            AND knowledge_bases.knowledgeBaseId = documents.knowledgeBaseId
            AND knowledge_bases.body ->> '$.importing' = 1)
          AND body ->> '$.chunkTotal' IS NOT ${chunksOfDocument}`,
    ],
  },
  {
    check: 'knowledge bases without a collection',
    selects: [
      `SELECT workspaceId || '/' || name AS example FROM knowledge_bases
        WHERE workspaceId IN ${localWorkspaces} AND NOT EXISTS (SELECT 1 FROM collection
            WHERE workspace_id = knowledge_bases.workspaceId AND name = knowledge_bases.vectorCollection)`,
    ],
  },
  {
    check: 'records with a damaged payload',
    selects: [
      `SELECT id AS example FROM record WHERE NOT json_valid(payload) OR json_type(payload) <> 'object'`,
    ],
  },
  {
    check: 'fitted collections without a model',
    selects: [
      `SELECT ${nameOfCollection} AS example FROM ${spacesOfCollections}
        WHERE fitted = 1 AND generation > 0 AND NOT EXISTS (SELECT 1 FROM embedder_model
            WHERE embedder_model.collection = collection.id AND embedder_model.generation = vector_space.generation)`,
    ],
  },
  {
    check: 'carried vectors without a record or a space, or with a wrong length',
    selects: [
      `SELECT carried_vector.record || '' AS example FROM carried_vector
        LEFT JOIN record ON record.record = carried_vector.record
        LEFT JOIN vector_space ON vector_space.id = space AND vector_space.collection = record.collection
        WHERE vector_space.id IS NULL OR typeof(data) <> 'blob'
          OR length(data) <> dimension * ${Float32Array.BYTES_PER_ELEMENT}`,
    ],
  },
  {
    check: 'damaged collections',
    selects: [
      `SELECT ${nameOfCollection} AS example FROM ${spacesOfCollections}
        WHERE dimension < 1 OR metric NOT IN (${metrics.map(metric => `'${metric}'`).join(', ')})`,
      `SELECT ${nameOfCollection} AS example FROM collection
        WHERE NOT EXISTS (SELECT 1 FROM vector_space WHERE collection = collection.id AND name = '${defaultSpace}')`,
    ],
  },
  {
    check: 'collections with a wrong count or size',
    selects: [
      `SELECT ${nameOfCollection} AS example FROM collection
        WHERE (records, text_bytes, payload_bytes) IS NOT (
          SELECT count(*), coalesce(sum(coalesce(octet_length(title), 0) + coalesce(octet_length(text), 0)), 0),
              coalesce(sum(octet_length(payload)), 0)
            FROM record WHERE record.collection = collection.id)`,
    ],
  },
  {
    check: 'segments of the posting index with a wrong size',
    selects: [
      `SELECT id || '' AS example FROM posting_segment
        WHERE state = 1 AND bytes <> (SELECT coalesce(sum(octet_length(data) + octet_length(first_term)), 0)
          FROM posting_block WHERE segment = posting_segment.id)`,
    ],
  },
  {
    check: 'knowledge bases with a wrong number of documents',
    selects: [
      `SELECT coalesce(counted.workspaceId, stored.workspaceId) || '/' ||
            coalesce(counted.knowledgeBaseId, stored.knowledgeBaseId) AS example
        FROM (SELECT workspaceId, knowledgeBaseId, count(*) AS documents FROM documents
            WHERE workspaceId IS NOT NULL AND knowledgeBaseId IS NOT NULL GROUP BY workspaceId, knowledgeBaseId) AS counted
          FULL JOIN document_count AS stored USING (workspaceId, knowledgeBaseId)
        WHERE counted.documents IS NOT stored.documents`,
    ],
  },
  {
    check: 'documents and jobs with wrong tags',
    selects: Object.entries({ ...tagQueries, deleted_documents_tags: deletedDocumentTagsQuery }).flatMap(
      ([table, query]) => {
        const stored = `SELECT workspaceId, tag, ordinal FROM ${table}`
        const select = (from: string, except: string) =>
          `SELECT '${table}/' || ordinal AS example FROM (SELECT * FROM (${from}) EXCEPT SELECT * FROM (${except}))`
        return [select(stored, query), select(query, stored)]
      },
    ),
  },
]

/** Checks the content of a store, including the tables of each collection. */
export function contentChecks(database: Database.Database): readonly StoreCheck[] {
  const collections = database
    .prepare<[], CheckedCollection>('SELECT id, lexical, full_text AS fullText, reindex FROM collection')
    .all()
  const spaces = database
    .prepare<[], CheckedSpace>(
      'SELECT id AS spaceId, collection, name, generation, dimension, metric, staging FROM vector_space',
    )
    .all()
  const present = new Set(
    database.prepare<[], string>(`SELECT name FROM sqlite_schema WHERE type = 'table'`).pluck().all(),
  )
  const expected = new Set([...spaces.flatMap(tablesOfSpace), ...collections.flatMap(textTables)])
  const unexpected = [...present].filter(
    name => /^(?:vec_\d+_\d+|fts_\d+)$/.test(name) && !expected.has(name),
  )
  const missing = [...expected].filter(name => !present.has(name))
  const isPresent = (table: string) => present.has(table)
  const complete = spaces.filter(space => tablesOfSpace(space).every(isPresent))
  const results = [
    ...contentProblemQueries,
    {
      check: 'records without a vector, and vectors without a record',
      selects: complete.flatMap(vectorMismatches),
    },
    { check: 'vectors with a wrong length', selects: complete.flatMap(malformedVectors) },
    { check: 'vector spaces with a wrong number of vectors', selects: complete.map(wrongVectorCount) },
  ].map(query => runProblemQuery(database, query))
  const connection = new SqliteConnection(database)
  const isDamaged = results.some(({ count }) => count > 0)
  const quantized = isDamaged ? [] : findQuantizationFaults(connection, spaces)
  const faults = findPostingFaults(connection)
  const indexed = faults.length > 0 ? [] : collections.filter(each => textTables(each).every(isPresent))
  const mismatches = indexed.flatMap(each => indexMismatches(connection, each))
  return [
    ...results,
    { check: 'damage in the posting index', count: faults.length, examples: faults.slice(0, examplesMax) },
    {
      check: 'records missing from the full-text index, and index entries without a record',
      count: mismatches.length,
      examples: mismatches.slice(0, examplesMax),
    },
    {
      check: 'damage in quantized vectors',
      count: quantized.length,
      examples: quantized.slice(0, examplesMax),
    },
    { check: 'tables without a collection', count: unexpected.length, examples: unexpected },
    { check: 'collections with missing tables', count: missing.length, examples: missing },
  ]
}

function textTables({ id, fullText }: CheckedCollection): string[] {
  return fullText ? [textTable(id)] : []
}

/** Only the default space must have a vector of every record. */
function vectorMismatches(space: CheckedSpace): string[] {
  const records = `SELECT record FROM record WHERE collection = ${space.collection}`
  const stray = tablesOfSpace(space).map(table =>
    listDifference(`SELECT record FROM ${table}`, records, table),
  )
  const table = vectorTable(space)
  const missing = listDifference(records, `SELECT record FROM ${table}`, table)
  return space.name === defaultSpace ? [missing, ...stray] : stray
}

function malformedVectors(space: CheckedSpace): string[] {
  return tablesOfSpace(space).map(
    table => `SELECT '${table}/' || record AS example FROM ${table}
      WHERE typeof(data) <> 'blob' OR length(data) <> ${space.dimension * Float32Array.BYTES_PER_ELEMENT}`,
  )
}

function wrongVectorCount(space: CheckedSpace): string {
  const table = vectorTable(space)
  return `SELECT '${table}' AS example FROM vector_space
    WHERE id = ${space.spaceId} AND vectors <> (SELECT count(*) FROM ${table})`
}

/** Compares the records that have text with the entries of each index. An index that is being filled may lack records. */
function indexMismatches(connection: SqliteConnection, collection: CheckedCollection): string[] {
  const { id, lexical, fullText, reindex } = collection
  if (!lexical) return []
  const texts = readRecords(
    connection,
    `SELECT record FROM record WHERE collection = ${id} AND (text IS NOT NULL OR title IS NOT NULL)`,
  )
  const indexes = listPostingIndexes(connection, id)
  const isSearchable = fullText || indexes.some(({ active }) => active)
  const ofPostings = indexes.flatMap(index => {
    const entries = new Set(indexedRecords(connection, index.id))
    const missing = index.active ? [...texts].filter(record => !entries.has(record)) : []
    const stray = [...entries].filter(record => !texts.has(record))
    return [...missing, ...stray].map(record => `posting_index ${index.id}/${record}`)
  })
  const ofTable = fullText ? tableMismatches(connection, id, texts) : []
  const ofCollection = isSearchable || reindex ? [] : [`collection ${id}`]
  return [...ofCollection, ...ofPostings, ...ofTable]
}

/**
 * Returns SQL that compares the records that have text with the `docsize` table of the full-text index, which has one
 * row per indexed record.
 *
 * @see https://www.sqlite.org/fts5.html#the_docsize_table
 */
function tableMismatches(connection: SqliteConnection, id: number, texts: ReadonlySet<number>): string[] {
  const table = textTable(id)
  const entries = readRecords(connection, `SELECT id AS record FROM ${table}_docsize`)
  const different = [
    ...[...texts].filter(record => !entries.has(record)),
    ...[...entries].filter(record => !texts.has(record)),
  ]
  return different.map(record => `${table}/${record}`)
}

function readRecords(connection: SqliteConnection, sql: string): ReadonlySet<number> {
  const rows = connection.prepare<{ record: number }>(sql).all()
  return new Set(rows.map(({ record }) => record))
}

/** Returns an SQL statement that finds the record numbers that only the first of two SELECT statements returns. */
function listDifference(one: string, other: string, table: string): string {
  return `SELECT '${table}/' || record AS example FROM (${one} EXCEPT ${other})`
}
