import Database from '../../src/storage/sqlite/driver.ts'

/**
 * Changes a store so that its lexical collections are as the migration of an earlier schema leaves them: with a full-text
 * table, and without a posting index.
 */
export function revertToFullText(path: string): void {
  const database = new Database(path)
  database.exec('BEGIN')
  for (const id of database.prepare<[], number>('SELECT id FROM collection WHERE lexical = 1').pluck().all())
    database.exec(`
      CREATE VIRTUAL TABLE fts_${id} USING fts5(title, text, content='', contentless_delete=1,
        tokenize='porter unicode61 remove_diacritics 2');
      INSERT INTO fts_${id} (rowid, title, text) SELECT record, title, text FROM record
        WHERE collection = ${id} AND (title IS NOT NULL OR text IS NOT NULL)`)
  for (const table of ['index', 'segment', 'slots', 'deletions', 'classes', 'block'])
    database.exec(`DELETE FROM posting_${table}`)
  database.exec('UPDATE collection SET full_text = 1, reindex = 1 WHERE lexical = 1')
  database.exec('COMMIT')
  database.close()
}
