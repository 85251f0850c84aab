import { join } from 'node:path'
import { WbError } from '../contract/errors.ts'
import type { Config } from './schema.ts'

/** Path of a store in memory. */
const memoryPath = ':memory:'

/**
 * Returns the location of the configured store.
 *
 * @throws driver_unavailable  when this version has no driver for the control plane
 */
export function storeLocation({ controlPlane }: Config, dataDir: string) {
  switch (controlPlane.driver) {
    case 'memory':
      return { driver: 'sqlite', path: memoryPath, dataDir } as const
    case 'file':
      return { driver: 'sqlite', path: join(controlPlane.root, 'workbase.db'), dataDir } as const
    case 'sqlite':
      return { ...defaultLocation(dataDir), ...(controlPlane.path !== null && { path: controlPlane.path }) }
    default:
      throw new WbError(
        'driver_unavailable',
        `controlPlane.driver: '${controlPlane.driver}' has no driver in this version`,
        { hint: 'Use sqlite, file or memory.' },
      )
  }
}

/** Returns the location of the store of a data directory whose configuration does not name another one. */
export function defaultLocation(dataDir: string) {
  return { driver: 'sqlite', path: join(dataDir, 'workbase.db'), dataDir } as const
}
