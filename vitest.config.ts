import { resolve } from 'node:path'
import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const report = process.env.VITEST_JSON

/** Tests that run every command of the docs and of the help, which takes minutes. */
const docs = 'test/docs/**/*.test.ts'

/** Tests that need onnxruntime-node; `npm run check:native` runs them. */
const native = 'test/native/**/*.test.ts'

/** Tests that repeat attacks, crashes or races many times, or measure quality on a whole collection. */
const endurance = [
  'access/drill',
  'access/mutation',
  'access/row-level-model',
  'agents/chat/cranfield',
  'agents/chat/many-answers',
  'agents/chat/memory',
  'attacks/bodies',
  'attacks/damaged-store',
  'attacks/request-heads',
  'knowledge/deleted-meanwhile',
  'knowledge/quality',
  'knowledge/rare-words',
  'processes/commands',
  'processes/ended-at-once',
  'processes/killed-decisions',
  'processes/killed-ingest',
  'processes/killed-mixed-ingest',
  'processes/killed-reindex',
  'processes/killed-sync',
  'processes/killed-turn',
  'processes/renewal',
  'processes/revocation',
  'sentence-model/quality',
  'storage/durability',
  'storage/posting-backfill',
  'storage/postings/kills',
  'storage/scan-workers',
  'workspaces/cascade-faults',
].map(name => `test/${name}.test.ts`)

/** Slow tests in small files. Vitest starts large files first, so these would run alone at the end. */
const longest = new Set(
  [
    ...endurance,
    ...['processes/mcp-serve', 'storage/drivers', 'structure/dev', 'wire/every-code'].map(
      name => `test/${name}.test.ts`,
    ),
  ].map(file => resolve(file)),
)

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => Number(longest.has(b.moduleId)) - Number(longest.has(a.moduleId)))
  }
}

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: {
          name: 'product',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, docs, native, ...endurance],
        },
      },
      { extends: true, test: { name: 'endurance', include: endurance } },
      { extends: true, test: { name: 'docs', include: [docs] } },
      { extends: true, test: { name: 'native', include: [native] } },
    ],
    globalSetup: 'test/structure/built.ts',
    setupFiles: [
      'test/harness/setup.ts',
      // `npm run test:mutation` needs to know which tests call a function.
      ...(process.env.WB_FUNCTION_RECORDS ? ['scripts/record-functions.ts'] : []),
    ],
    pool: 'forks',
    // Test files share their modules: loading the modules for each file takes a fifth of the time.
    isolate: false,
    restoreMocks: true,
    unstubEnvs: true,
    sequence: { sequencer: LongestFirst },
    // Two more than the cores of a small machine, because workers wait for processes half of the time.
    maxWorkers: 4,
    // Tests that start processes share two cores with the other tests.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    expect: { poll: { timeout: 10_000 } },
    env: { NO_COLOR: '1' },
    // `.ci/run` also writes the results to a file.
    ...(report && { reporters: ['default', 'json'], outputFile: { json: report } }),
    coverage: {
      provider: 'v8',
      include: ['src/**/*.{ts,tsx}', 'commands/**/*.ts'],
      reporter: ['text-summary', 'html'],
      // Tests must cover every branch of authentication and authorization.
      thresholds: Object.fromEntries(
        [
          'src/auth/**',
          'src/access/{authorize,subject,principals,full-visibility}.ts',
          'src/contract/{access,scopes}.ts',
          'src/storage/cursor.ts',
        ].map(files => [files, { branches: 100 }]),
      ),
    },
  },
})
