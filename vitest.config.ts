import { configDefaults, defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const report = process.env.VITEST_JSON

/** Types every command of the pages and of the help, which takes minutes. */
const docs = 'test/docs/**/*.test.ts'

/** Files of long tests and short text, which would else be alone at the end. */
const longest =
  /test\/(?:storage\/drivers|processes\/mcp-serve|access\/mutation|processes\/revocation)\.test\.ts$/

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    return sorted.sort((a, b) => Number(longest.test(b.moduleId)) - Number(longest.test(a.moduleId)))
  }
}

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: { name: 'product', include: ['test/**/*.test.ts'], exclude: [...configDefaults.exclude, docs] },
      },
      { extends: true, test: { name: 'docs', include: [docs] } },
    ],
    globalSetup: 'test/structure/built.ts',
    pool: 'forks',
    // Files share their modules: loading those again for each file takes a fifth of the time.
    isolate: false,
    restoreMocks: true,
    unstubEnvs: true,
    sequence: { sequencer: LongestFirst },
    // Two more than the cores of a small machine: half of a worker's time is waiting for what it has started.
    maxWorkers: 4,
    // A test that starts processes shares two cores with the others.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    teardownTimeout: 10_000,
    expect: { poll: { timeout: 10_000 } },
    env: { NO_COLOR: '1' },
    // `.ci/run` names a file for the results, beside what a person reads.
    ...(report && { reporters: ['default', 'json'], outputFile: { json: report } }),
    coverage: {
      provider: 'v8',
      include: ['src/**/*.{ts,tsx}', 'commands/**/*.ts'],
      reporter: ['text-summary', 'html'],
      // Who a caller is and what it may do has no way that no test went.
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
