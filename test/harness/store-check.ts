import { join } from 'node:path'
import { checkStore } from '../../src/storage/open.ts'
import type { StoreCheck } from '../../src/storage/storage-driver.ts'

/** Returns the failed checks of the store of a data directory. */
export async function failedStoreChecks(dataDir: string): Promise<StoreCheck[]> {
  const report = await checkStore({ driver: 'sqlite', path: join(dataDir, 'workbase.db') })
  return report!.checks.filter(({ count }) => count > 0)
}
