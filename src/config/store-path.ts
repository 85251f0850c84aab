import { join } from 'node:path'
import { WbError } from '../contract/errors.ts'
import type { Config } from './schema.ts'

/**
 * Returns the path of the configured store, or `:memory:`.
 *
 * @throws driver_unavailable  when this version has no driver for the control plane
 */
export function storePath({ controlPlane }: Config, dataDir: string): string {
  switch (controlPlane.driver) {
    case 'memory':
      return ':memory:'
    case 'file':
      return join(controlPlane.root, 'workbase.db')
    case 'sqlite':
      return controlPlane.path ?? join(dataDir, 'workbase.db')
    default:
      throw new WbError(
        'driver_unavailable',
        `controlPlane.driver: '${controlPlane.driver}' has no driver in this version`,
        { hint: 'Use sqlite, file or memory.' },
      )
  }
}
