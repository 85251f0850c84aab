import { fifth } from './fifth.ts'
import { first } from './first.ts'
import { fourth } from './fourth.ts'
import { second } from './second.ts'
import { third } from './third.ts'

/** The SQL that leads from each schema version to the next, from 0 on. Only ever appended to. */
export const migrations: readonly string[] = [first, second, third, fourth, fifth]
