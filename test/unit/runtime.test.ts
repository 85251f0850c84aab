import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { loadConfig } from '../../src/config/load-config.ts'
import type { Config } from '../../src/config/schema.ts'
import { openRuntime } from '../../src/runtime.ts'
import { scratchDir } from '../harness/runtime.ts'

const environment = createEnvironment({})
const { config } = loadConfig({ path: null }, environment)
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const resume = { jobsResume: { enabled: false, graceMs: 1_000, intervalMs: 1_000 } }

const asked: [string, Partial<Config>][] = [
  [
    'controlPlane.driver',
    { controlPlane: { driver: 'postgres', urlRef: 'env:DATABASE_URL', schema: 'workbase', ...resume } },
  ],
]

test.each(asked)(
  'rejects an unsupported configuration by its key, %s, before it creates anything',
  async (key, part) => {
    const dataDir = join(scratchDir(), 'data')
    const settings = { environment, dataDir, threads: false, loopback: true, server: true, log: silent }
    await expect(openRuntime({ config: { ...config, ...part }, ...settings })).rejects.toMatchObject({
      code: 'driver_unavailable',
      message: expect.stringContaining(key),
    })
    expect(existsSync(dataDir)).toBe(false)
  },
)
