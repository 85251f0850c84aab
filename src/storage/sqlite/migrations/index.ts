import { fifthMigration } from './fifth.ts'
import { firstMigration } from './first.ts'
import { fourthMigration } from './fourth.ts'
import { secondMigration } from './second.ts'
import { thirdMigration } from './third.ts'

/** The SQL that leads from each schema version to the next, from 0 on. Only ever appended to. */
export const migrations: readonly string[] = [
  firstMigration,
  secondMigration,
  thirdMigration,
  fourthMigration,
  fifthMigration,
]
