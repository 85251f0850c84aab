import { eighteenthMigration } from './eighteenth.ts'
import { eighthMigration } from './eighth.ts'
import { eleventhMigration } from './eleventh.ts'
import { fifteenthMigration } from './fifteenth.ts'
import { fifthMigration } from './fifth.ts'
import { firstMigration } from './first.ts'
import { fourteenthMigration } from './fourteenth.ts'
import { fourthMigration } from './fourth.ts'
import { nineteenthMigration } from './nineteenth.ts'
import { ninthMigration } from './ninth.ts'
import { secondMigration } from './second.ts'
import { seventeenthMigration } from './seventeenth.ts'
import { seventhMigration } from './seventh.ts'
import { sixteenthMigration } from './sixteenth.ts'
import { sixthMigration } from './sixth.ts'
import { tenthMigration } from './tenth.ts'
import { thirdMigration } from './third.ts'
import { thirteenthMigration } from './thirteenth.ts'
import { twelfthMigration } from './twelfth.ts'
import { twentiethMigration } from './twentieth.ts'

/**
 * SQL migrations. The entry with index `n` migrates schema version `n` to `n + 1`. Append entries, and never change
 * one.
 */
export const migrations: readonly string[] = [
  firstMigration,
  secondMigration,
  thirdMigration,
  fourthMigration,
  fifthMigration,
  sixthMigration,
  seventhMigration,
  eighthMigration,
  ninthMigration,
  tenthMigration,
  eleventhMigration,
  twelfthMigration,
  thirteenthMigration,
  fourteenthMigration,
  fifteenthMigration,
  sixteenthMigration,
  seventeenthMigration,
  eighteenthMigration,
  nineteenthMigration,
  twentiethMigration,
]
