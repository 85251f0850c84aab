/**
 * Tables of the posting store, as the sixth migration creates them. A slot is the position of a record in its segment.
 *
 * - `posting_index`: one row per collection and generation, with the language and the version of the analyzer that created
 *   its terms. `version` grows with every change of its segments. At most one generation of a collection is active.
 *   `merge_due` is 1 if a merge could be useful.
 * - `posting_segment`: a range of records. `state` is 0 while a merge builds it, 1 while searches read it, and 2 once it
 *   can be deleted. `stamp` is the version at which its deletions last changed. `progress` counts the
 *   committed steps of the merge that builds it.
 * - `posting_slots`: for each slot, the record number minus `first_record`, and the number of words (little-endian u32).
 * - `posting_deletions`: one bit per slot; no row if nothing is deleted.
 * - `posting_classes`: unused; 4 bytes of value 0 for each slot, in pages, because earlier versions require them.
 * - `posting_block`: the posting lists of a range of terms, see `term-blocks.ts`.
 */
export const postingsSchema = `
CREATE TABLE posting_index (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  collection INTEGER NOT NULL,
  generation INTEGER NOT NULL,
  language TEXT NOT NULL,
  analyzer INTEGER NOT NULL,
  active INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 0,
  last_record INTEGER NOT NULL DEFAULT 0,
  merge_due INTEGER NOT NULL DEFAULT 0,
  lease_owner TEXT,
  lease_until INTEGER NOT NULL DEFAULT 0,
  UNIQUE (collection, generation)
) STRICT;
CREATE UNIQUE INDEX posting_index_active ON posting_index (collection) WHERE active = 1;
CREATE INDEX posting_index_due ON posting_index (id) WHERE merge_due = 1;

CREATE TABLE posting_segment (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  posting_index INTEGER NOT NULL,
  state INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  first_record INTEGER NOT NULL,
  last_record INTEGER NOT NULL,
  slots INTEGER NOT NULL,
  deleted INTEGER NOT NULL DEFAULT 0,
  progress INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX posting_segment_by_index ON posting_segment (posting_index, state, first_record);
CREATE INDEX posting_segment_dropped ON posting_segment (id) WHERE state = 2;

CREATE TABLE posting_slots (
  segment INTEGER PRIMARY KEY,
  records BLOB NOT NULL,
  lengths BLOB NOT NULL
) STRICT;

CREATE TABLE posting_deletions (
  segment INTEGER PRIMARY KEY,
  bits BLOB NOT NULL
) STRICT;

CREATE TABLE posting_classes (
  segment INTEGER NOT NULL,
  page INTEGER NOT NULL,
  classes BLOB NOT NULL,
  PRIMARY KEY (segment, page)
) STRICT;

CREATE TABLE posting_block (
  segment INTEGER NOT NULL,
  first_term BLOB NOT NULL,
  data BLOB NOT NULL,
  PRIMARY KEY (segment, first_term)
) STRICT;
`

/** Adds the total size of the blocks of a segment, in bytes. A merge sets it after its last block. */
export const segmentBytesSchema = `
ALTER TABLE posting_segment ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
`

/** Maximum number of slots in a segment. A slot number takes 16 bits in memory. */
export const SEGMENT_SLOTS_MAX = 65_536
/** Maximum difference between the record numbers of a segment. */
export const RECORD_SPAN_MAX = 0xffff_ffff
